package apiclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/fault"
)

const dump = "a dump of twenty-four by."

// receiver takes an upload as the API does; each request for a part goes as the next step says.
type receiver struct {
	t     *testing.T
	mu    sync.Mutex // requests come one after another, on several connections
	got   string
	steps []func(rest string) (kept int, code string)
	parts []string // Content-Range of each request
}

func takes(n int, code string) func(string) (int, string) {
	return func(string) (int, string) { return n, code }
}

func takesAll(rest string) (int, string) { return len(rest), "" }

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := q.Header.Get("Content-Range")
	r.parts = append(r.parts, part)
	if !strings.HasPrefix(part, "bytes */") {
		rest, err := io.ReadAll(q.Body)
		if want := fmt.Sprintf("bytes %d-%d/%d", len(r.got), len(dump)-1, len(dump)); err != nil || part != want {
			r.t.Errorf("%s, want %s (%v)", part, want, err)
		}
		kept, code := r.steps[0](string(rest))
		r.steps = r.steps[1:]
		r.got += string(rest[:kept])
		if code == "" && kept < len(rest) {
			panic(http.ErrAbortHandler)
		}
		if code != "" {
			w.Header().Set("Retry-After", map[string]string{"SERVER_BUSY": "1"}[code])
			w.WriteHeader(fault.Code(code).Status())
			_, _ = io.WriteString(w, `{"error":{"code":"`+code+`","message":"m","details":[]}}`)
			return
		}
	}
	if len(r.got) > 0 {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(r.got)-1))
	}
	w.WriteHeader(http.StatusNoContent)
}

// A service that is full says when to come back.
func TestAnUploadWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	r := &receiver{t: t, steps: []func(string) (int, string){takes(0, "SERVER_BUSY"), takesAll}}
	server := httptest.NewServer(r)
	defer server.Close()
	client := check.Must(apiclient.New(apiclient.Config{URL: server.URL}))(t)
	began := time.Now()
	err := client.Restores.SendUpload(t.Context(), "d", "u", strings.NewReader(dump), int64(len(dump)))
	if took := time.Since(began); err != nil || r.got != dump || took < time.Second {
		t.Errorf("%q after %s: %v", r.got, took, err)
	}
}

// An upload that breaks off goes on where it ended, whatever ended it; one that stands still is given up.
func TestAnUploadGoesOn(t *testing.T) {
	none := takes(0, "AGENT_ERROR")
	for name, c := range map[string]struct {
		steps []func(string) (int, string)
		fails string
	}{
		"at once":            {[]func(string) (int, string){takesAll}, ""},
		"broken off":         {[]func(string) (int, string){takes(3, ""), takes(0, ""), takes(5, ""), takesAll}, ""},
		"refused":            {[]func(string) (int, string){takes(7, "AGENT_ERROR"), takes(0, "BACKUP_CONFLICT"), takesAll}, ""},
		"too slow":           {[]func(string) (int, string){takes(7, "REQUEST_TIMEOUT"), takesAll}, ""},
		"all but the answer": {[]func(string) (int, string){takes(len(dump), "AGENT_ERROR")}, ""},
		"expired":            {[]func(string) (int, string){takes(3, ""), takes(0, "UPLOAD_NOT_FOUND")}, "UPLOAD_NOT_FOUND"},
		"at the same byte":   {[]func(string) (int, string){takes(3, "AGENT_ERROR"), none, none, none, none}, "AGENT_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{t: t, steps: c.steps}
			server := httptest.NewServer(r)
			defer server.Close()
			client := check.Must(apiclient.New(apiclient.Config{URL: server.URL, Attempts: 4}))(t)
			err := client.Restores.SendUpload(t.Context(), "d", "u", strings.NewReader(dump), int64(len(dump)))
			if c.fails == "" && (err != nil || r.got != dump) || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("%q: %v, asked %q", r.got, err, r.parts)
			}
			if len(r.steps) != 0 {
				t.Errorf("%d steps are left", len(r.steps))
			}
		})
	}
}
