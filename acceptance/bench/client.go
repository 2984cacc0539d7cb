package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client is a customer's program with one key.
type client struct{ base, key string }

// created is what the parts need of a new database.
type created struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Password string `json:"password"` // of its owner
}

func (c client) create(ctx context.Context, name string) (d created, err error) {
	body := map[string]string{"name": name, "displayName": name}
	return d, c.call(ctx, http.MethodPost, "/databases", body, http.StatusCreated, &d)
}

type operation struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Result struct {
		Filename       string `json:"filename"`
		SizeBytes      int64  `json:"sizeBytes"`
		ChecksumSHA256 string `json:"checksumSha256"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

// backup takes a backup and follows its operation to the end.
func (c client) backup(ctx context.Context, database string) (operation, error) {
	var started struct {
		Operation operation `json:"operation"`
	}
	err := c.call(ctx, http.MethodPost, "/databases/"+database+"/backups", nil, http.StatusAccepted, &started)
	if err != nil {
		return operation{}, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var o operation
		if err := c.call(ctx, http.MethodGet, "/operations/"+started.Operation.ID, nil, http.StatusOK, &o); err != nil {
			return operation{}, err
		}
		switch o.Status {
		case "succeeded":
			return o, nil
		case "failed", "canceled":
			return o, fmt.Errorf("the backup is %s: %s", o.Status, o.Error)
		}
		select {
		case <-ctx.Done():
			return o, ctx.Err()
		case <-tick.C:
		}
	}
}

func (c client) call(ctx context.Context, method, path string, body any, want int, into any) error {
	return c.callOnce(ctx, "", method, path, body, want, into)
}

// callOnce sends a key too, by which a repetition would be known; none where it is empty.
func (c client) callOnce(ctx context.Context, key, method, path string, body any, want int, into any) error {
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = bytes.NewReader(encoded)
	}
	response, err := c.sendOnce(ctx, key, method, path, text)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != want {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return json.Unmarshal(answer, into)
}

func (c client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	return c.sendOnce(ctx, "", method, path, body)
}

func (c client) sendOnce(ctx context.Context, key, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return http.DefaultClient.Do(request)
}
