package web_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
)

// Texts are compressed for those who take that, and all headers of them are right, also for HEAD.
func TestCompression(t *testing.T) {
	w := serve(t, append(everyKind(), web.Get("long", "/long", plain(strings.Repeat("long ", 20_000)))))
	page := w.get("/open").parsed(t)
	style, script := attribute(elements(page, "link")[1], "href"), attribute(elements(page, "script")[0], "src")
	for _, c := range []struct {
		accepts []string
		gzip    bool
	}{
		{nil, false}, {[]string{""}, false}, {[]string{"identity"}, false}, {[]string{"br"}, false}, {[]string{"xgzip"}, false},
		{[]string{"*"}, false}, // it may be compressed, and need not
		{[]string{"gzip;q=0"}, false}, {[]string{"br, gzip ; q=0.000"}, false}, {[]string{"gzip"}, true}, {[]string{"GZIP"}, true},
		{[]string{"br, gzip, deflate"}, true}, {[]string{"gzip;q=0.5"}, true}, {[]string{"gzip;q=1.0"}, true},
		{[]string{"br", "gzip"}, true},
	} {
		for _, path := range []string{"/open", "/long", "/nothing", style, script} {
			for name, client := range map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old} {
				ask := func(how string) answer {
					return check.Must(w.do(client, w.request(path, nil, as("pat"), method(how), with("Accept-Encoding", c.accepts...))))(t)
				}
				whole, head := ask("GET"), ask("HEAD")
				if packed := whole.Get("Content-Encoding") == "gzip"; packed != c.gzip || whole.Get("Vary") != "Accept-Encoding" ||
					whole.Get("Content-Length") != strconv.Itoa(len(whole.body)) {
					t.Errorf("%s over %s for %q: %v of %d", path, name, c.accepts, whole.Header, len(whole.body))
				}
				plain := whole.body
				if c.gzip {
					plain = string(check.Must(io.ReadAll(check.Must(gzip.NewReader(strings.NewReader(whole.body)))(t)))(t))
				}
				if want := w.ask(path, nil, as("pat")).body; len(plain) != len(want) || len(plain) < 100 {
					t.Errorf("%s over %s for %q: %d bytes instead of %d", path, name, c.accepts, len(plain), len(want))
				}
				for _, header := range []string{"Content-Encoding", "Vary", "Content-Type"} {
					if head.Get(header) != whole.Get(header) || head.body != "" || head.Get("Content-Length") == "" {
						t.Errorf("HEAD %s over %s for %q: %v", path, name, c.accepts, head.Header)
					}
				}
			}
		}
	}
}

// Nothing of the dashboard is kept but what is the same for ever, so that nothing is ever asked for on a condition or in parts.
func TestConditions(t *testing.T) {
	w := serve(t, everyKind())
	style := attribute(elements(w.get("/open").parsed(t), "link")[1], "href")
	for path, text := range map[string]string{"/open": "<!doctype html>", style: "/*", "/download": "abc", "/data": "{}"} {
		got := w.get(path, as("pat"), with("If-None-Match", "*"), with("If-Modified-Since", "Fri, 27 Nov 2099 12:00:00 GMT"),
			with("Range", "bytes=1-2"))
		kept := got.Get("ETag") + got.Get("Last-Modified") + got.Get("Accept-Ranges")
		if got.status != 200 || !strings.HasPrefix(got.body, text) || kept != "" {
			t.Errorf("%s: %d, %v, %.20q", path, got.status, got.Header, got.body)
		}
	}
	old := style[:strings.LastIndex(style, "-")] + "-000000000000.css"
	if got := w.get(old); got.status != 404 || got.Get("Cache-Control") != "no-store" {
		t.Errorf("another version of the style: %d, %v", got.status, got.Header)
	}
}

// body is what a download reads. It tells of its end.
type body struct {
	io.Reader
	closed chan struct{}
}

func (b body) Close() error {
	close(b.closed)
	return nil
}

// A file that is not whole is never taken for one, and its source is closed on every way out.
func TestDownload(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	for _, c := range []struct {
		what string
		text io.Reader
		size int64
		head bool
		want int // bytes; -1: the connection breaks
	}{
		{"whole", strings.NewReader(long), int64(len(long)), false, len(long)},
		{"empty", strings.NewReader(""), 0, false, 0},
		{"HEAD", strings.NewReader(long), int64(len(long)), true, 0},
		{"too short", strings.NewReader(long), int64(len(long)) + 1, false, -1},
		{"nothing", strings.NewReader(""), 5, false, -1},
		{"too long", strings.NewReader(long), int64(len(long)) - 1, false, -1},
		{"broken", io.MultiReader(strings.NewReader(long), failing{}), int64(len(long)) + 10, false, -1},
		{"broken at once", failing{}, 10, false, -1},
	} {
		for _, name := range []string{"h2", "HTTP/1.1"} {
			from := body{c.text, make(chan struct{})}
			if again, is := c.text.(io.Seeker); is {
				check.Must(again.Seek(0, io.SeekStart))(t)
			}
			w := serve(t, []web.Page{web.Get("download", "/download", func(*web.Request) (web.Answer, error) {
				return web.Download{Filename: "backup-1.gz", ContentType: "application/gzip", Size: c.size, Body: from}, nil
			})})
			client := map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old}[name]
			how := "GET"
			if c.head {
				how = "HEAD"
			}
			got, err := w.do(client, w.request("/download", nil, as("pat"), method(how), with("Accept-Encoding", "gzip")))
			<-from.closed
			if c.want < 0 {
				if err == nil {
					t.Errorf("%s over %s: %d bytes are taken for the whole", c.what, name, len(got.body))
				}
				check.Eventually(t, "nobody is told", func() bool { return w.said.FilterMessage("an answer was broken off").Len() == 1 })
				if w.said.FilterLevelExact(zapcore.ErrorLevel).Len() != 0 {
					t.Errorf("%s over %s is logged as %v", c.what, name, w.said.All())
				}
				continue
			}
			if err != nil || len(got.body) != c.want || got.Get("Content-Length") != strconv.FormatInt(c.size, 10) ||
				got.Get("Content-Disposition") != `attachment; filename="backup-1.gz"` || got.Get("Content-Encoding") != "" {
				t.Errorf("%s over %s: %d bytes, %v, %v", c.what, name, len(got.body), got.Header, err)
			}
		}
	}
}

// failing fails when it is read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the agent has gone") }
