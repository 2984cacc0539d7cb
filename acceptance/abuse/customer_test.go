package abuse_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
)

// customer calls the API with one key, from one address of the loopback.
type customer struct {
	*world
	stack.Account
	client *http.Client
}

// newCustomer makes an account whose requests come from an address.
func (w *world) newCustomer(t testing.TB, name, from string) *customer {
	t.Helper()
	const databases = 500
	a, err := w.NewAccount(soon(t), name, "business", databases)
	noError(t, err)
	dialer := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	return &customer{world: w, Account: a, client: &http.Client{Transport: transport}}
}

// send sends a request; the caller closes the answer's body. Every one has an Idempotency-Key of its own.
func (c *customer) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.api.URL+"/api/v1"+path, content)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.Key)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	return c.client.Do(r)
}

// call sends a request and reads an answer with a status of 200 to 202.
func (c *customer) call(ctx context.Context, method, path string, body, into any) error {
	answer, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode < http.StatusOK || answer.StatusCode > http.StatusAccepted {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// made is a new database.
type made struct{ ID, Name, Username, Password string }

func (c *customer) create(ctx context.Context, name string) (d made, err error) {
	return d, c.call(ctx, http.MethodPost, "/databases", map[string]string{"name": name, "displayName": name}, &d)
}

// role is an additional role with its password.
type role struct{ RoleID, Username, Password string }

func (c *customer) createRole(ctx context.Context, database, name string) (r role, err error) {
	path := "/databases/" + database + "/custom-roles"
	body := map[string]any{"displayName": name, "accessProfile": "read_write", "connectionLimit": 10}
	if err := c.call(ctx, http.MethodPost, path, body, &r); err != nil {
		return r, err
	}
	return r, c.call(ctx, http.MethodPost, path+"/"+r.RoleID+"/credentials", nil, &r)
}

// rotate fails also where the rotation is still pending.
func (c *customer) rotate(ctx context.Context, database string, r role) error {
	path := "/databases/" + database + "/custom-roles/" + r.RoleID + "/changes"
	var change struct{ Status string }
	err := c.call(ctx, http.MethodPost, path, map[string]any{"kind": "rotate", "confirmDisconnect": true}, &change)
	if err == nil && change.Status != "completed" {
		err = fmt.Errorf("the rotation is %s", change.Status)
	}
	return err
}

// operation is a backup's.
type operation struct {
	ID, Status, Stage string
	Error             json.RawMessage
	Result            struct{ Filename string }
}

func (c *customer) startBackup(ctx context.Context, database string) (o operation, err error) {
	var answer struct{ Operation operation }
	err = c.call(ctx, http.MethodPost, "/databases/"+database+"/backups", nil, &answer)
	return answer.Operation, err
}

// backUp follows a backup to its end, and returns the file's name.
func (c *customer) backUp(ctx context.Context, database string) (filename string, err error) {
	o, err := c.startBackup(ctx, database)
	if err != nil {
		return "", err
	}
	for {
		switch o.Status {
		case "succeeded":
			return o.Result.Filename, nil
		case "failed", "canceled":
			return "", fmt.Errorf("the backup is %s: %s", o.Status, o.Error)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the backup is %s (%s): %w", o.Status, o.Stage, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
		if err := c.call(ctx, http.MethodGet, "/operations/"+o.ID, nil, &o); err != nil {
			return "", err
		}
	}
}

func (c *customer) download(ctx context.Context, database, filename string) error {
	answer, err := c.send(ctx, http.MethodGet, downloadPath(database, filename), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || n != answer.ContentLength) {
		err = fmt.Errorf("download: %s, %d of %d bytes", answer.Status, n, answer.ContentLength)
	}
	return err
}

func downloadPath(database, filename string) string {
	return "/databases/" + database + "/backups/" + filename
}
