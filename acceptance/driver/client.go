package driver

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
)

// wire speaks HTTP with one API host. It also plays the part of the service's proxy, which passes on the client's address.
type wire struct {
	base    string
	client  *http.Client
	secrets *secrets // that no log may hold; nil where the service writes none
}

func newWire(base string) wire {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	return wire{base: base, client: &http.Client{Transport: transport, Timeout: 2 * time.Minute}}
}

// Send implements spec.Wire.
func (w wire) Send(r spec.Request) (a spec.Answer, err error) {
	request, err := http.NewRequest(r.Method, w.base+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return a, err
	}
	for name, value := range r.Header {
		request.Header.Set(name, value)
	}
	if r.Key != "" {
		request.Header.Set("Authorization", "Bearer "+r.Key)
	}
	if r.From != "" {
		request.Header.Set("X-Forwarded-For", r.From)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	a.Status, a.Header = response.StatusCode, response.Header
	a.Body, err = io.ReadAll(response.Body)
	return a, err
}

// host gives clients of this API host, each with an address of its own.
func (w wire) host(key string) spec.API {
	var b [6]byte
	_, _ = rand.Read(b[:]) // it never fails
	return client{wire: w, key: key, from: fmt.Sprintf("2001:db8:%x:%x::1", b[:2], b[2:4])}
}

// client implements spec.API over HTTP.
type client struct {
	wire
	key, from string
}

const (
	databasesPath  = "/api/v1/databases"
	idempotencyKey = "Idempotency-Key"
)

// send sends a request. An empty header is left out.
func (c client) send(method, path string, body any, header ...string) (a spec.Answer, err error) {
	r := spec.Request{Method: method, Path: path, Key: c.key, From: c.from, Header: map[string]string{}}
	if body != nil {
		if r.Body, err = json.Marshal(body); err != nil {
			return a, err
		}
		r.Header["Content-Type"] = "application/json"
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			r.Header[header[i]] = header[i+1]
		}
	}
	return c.Send(r)
}

// ask sends a request and reads its answer into out, unless that is nil.
func (c client) ask(method, path string, body, out any, header ...string) error {
	a, err := c.send(method, path, body, header...)
	switch {
	case err != nil:
		return err
	case a.Status >= 400:
		return spec.ReadRefusal(a)
	case out == nil:
		return nil
	}
	return json.Unmarshal(a.Body, out)
}

func paged(path string, p spec.Page) string {
	query := url.Values{}
	if p.Limit != 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		query.Set("cursor", p.Cursor)
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Databases implements spec.DatabaseAPI.
func (c client) Databases(p spec.Page) (l spec.Listed[spec.Database], err error) {
	err = c.ask(http.MethodGet, paged(databasesPath, p), nil, &l)
	return l, err
}

// CreateDatabase implements spec.DatabaseAPI.
func (c client) CreateDatabase(n spec.NewDatabase) (made spec.Created, err error) {
	err = c.ask(http.MethodPost, databasesPath, n, &made, idempotencyKey, n.IdempotencyKey)
	return made, err
}

// Database implements spec.DatabaseAPI.
func (c client) Database(id string) (d spec.Database, err error) {
	err = c.ask(http.MethodGet, databasesPath+"/"+id, nil, &d)
	return d, err
}

// SetEnvironment implements spec.DatabaseAPI.
func (c client) SetEnvironment(id string, label *string) (*string, error) {
	var answer struct {
		Message string
		Data    struct {
			ID          string
			Environment *string
		}
	}
	body := map[string]*string{"environment": label}
	err := c.ask(http.MethodPatch, databasesPath+"/"+id+"/environment", body, &answer)
	if err == nil && (answer.Message == "" || answer.Data.ID != id) {
		err = fmt.Errorf("the answer is %+v", answer)
	}
	return answer.Data.Environment, err
}

// SetLifecycle implements spec.DatabaseAPI.
func (c client) SetLifecycle(id, action string) (string, error) {
	var answer struct {
		Message string
		Data    struct{ ID, Status string }
	}
	err := c.ask(http.MethodPost, databasesPath+"/"+id+"/lifecycle", map[string]string{"action": action}, &answer)
	if err == nil && (answer.Message == "" || answer.Data.ID != id) {
		err = fmt.Errorf("the answer is %+v", answer)
	}
	return answer.Data.Status, err
}

func allowlistPath(database string) string {
	return databasesPath + "/" + database + "/network/allowlist"
}

// Allowlist implements spec.AllowlistAPI.
func (c client) Allowlist(database string) ([]spec.Entry, error) {
	var answer struct{ Data []spec.Entry }
	err := c.ask(http.MethodGet, allowlistPath(database), nil, &answer)
	return answer.Data, err
}

// AddToAllowlist implements spec.AllowlistAPI.
func (c client) AddToAllowlist(database, cidr, description string) (spec.Entry, error) {
	body := map[string]string{"cidr": cidr}
	if description != "" {
		body["description"] = description
	}
	var answer struct{ Data spec.Entry }
	err := c.ask(http.MethodPost, allowlistPath(database), body, &answer)
	return answer.Data, err
}

// RemoveFromAllowlist implements spec.AllowlistAPI.
func (c client) RemoveFromAllowlist(database, entry string) error {
	return c.ask(http.MethodDelete, allowlistPath(database)+"/"+entry, nil, nil)
}

func backupsPath(database string) string { return databasesPath + "/" + database + "/backups" }

// Backups implements spec.BackupAPI.
func (c client) Backups(database string, p spec.Page) (l spec.Listed[spec.Backup], err error) {
	err = c.ask(http.MethodGet, paged(backupsPath(database), p), nil, &l)
	return l, err
}

type started struct {
	Message   string
	Operation spec.Operation
}

// StartBackup implements spec.BackupAPI.
func (c client) StartBackup(database string) (spec.Operation, error) {
	var answer started
	err := c.ask(http.MethodPost, backupsPath(database), nil, &answer)
	return answer.Operation, err
}

// DownloadBackup implements spec.BackupAPI.
func (c client) DownloadBackup(database, filename string) ([]byte, error) {
	a, err := c.Send(spec.Request{Method: http.MethodGet, Path: backupsPath(database) + "/" + filename, Key: c.key, From: c.from})
	if err == nil && a.Status != http.StatusOK {
		err = spec.ReadRefusal(a)
	}
	return a.Body, err
}

// DeleteBackup implements spec.BackupAPI.
func (c client) DeleteBackup(database, filename string) error {
	return c.ask(http.MethodDelete, backupsPath(database)+"/"+filename, nil, nil)
}

// Operations implements spec.OperationAPI.
func (c client) Operations(database string, p spec.Page) (l spec.Listed[spec.Operation], err error) {
	err = c.ask(http.MethodGet, paged(databasesPath+"/"+database+"/operations", p), nil, &l)
	return l, err
}

// Operation implements spec.OperationAPI.
func (c client) Operation(id string) (o spec.Operation, err error) {
	err = c.ask(http.MethodGet, "/api/v1/operations/"+id, nil, &o)
	return o, err
}

// CancelOperation implements spec.OperationAPI.
func (c client) CancelOperation(id string) (spec.Operation, error) {
	var answer started
	err := c.ask(http.MethodPost, "/api/v1/operations/"+id+"/cancel", nil, &answer)
	return answer.Operation, err
}

// Activity implements spec.API.
func (c client) Activity(database string, p spec.Page) (l spec.Listed[spec.Activity], err error) {
	err = c.ask(http.MethodGet, paged(databasesPath+"/"+database+"/activity", p), nil, &l)
	return l, err
}
