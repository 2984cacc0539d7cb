package browser

import (
	"crypto/tls"
	"crypto/x509"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/passkeys"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/ports"
)

//go:embed testdata
var testdata embed.FS

// site is a small site whose pages are good, but for what each is to be caught at.
type site struct {
	origin string
	roots  *x509.CertPool
	tls    *tls.Config
	mux    *http.ServeMux
	pages  map[string]served // by path
}

// served is the good page with a difference.
type served struct {
	markup string // put before its end
	script string // run by it
	status int
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types pgherd"

func newSite(t *testing.T) *site {
	t.Helper()
	ca := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	files := check.Must(ca.Issue("site", "localhost"))(t)
	s := &site{roots: x509.NewCertPool(), mux: http.NewServeMux(), pages: map[string]served{}}
	s.route()
	s.roots.AppendCertsFromPEM(check.Must(os.ReadFile(ca.CertFile()))(t))
	server := httptest.NewUnstartedServer(s.mux)
	s.tls = &tls.Config{Certificates: []tls.Certificate{check.Must(tls.LoadX509KeyPair(files.CertFile, files.KeyFile))(t)}}
	server.TLS = s.tls.Clone()
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	s.origin = "https://localhost:" + check.Must(url.Parse(server.URL))(t).Port()
	return s
}

func (s *site) route() {
	s.mux.HandleFunc("/", s.page)
	for name, kind := range map[string]string{"style.css": "text/css", "script.js": "text/javascript"} {
		s.mux.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", "max-age=3600")
			_, _ = w.Write(read(name))
		})
	}
	s.mux.HandleFunc("/own.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, s.pages[r.URL.Query().Get("of")].script)
	})
	s.mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
		_, _ = io.WriteString(w, "day,bytes\n")
	})
	s.mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 40 percent\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s.mux.HandleFunc("POST /answer", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/answered?name="+url.QueryEscape(r.FormValue("name")+" "+r.FormValue("plan")+" "+r.FormValue("from")+
			" "+r.FormValue("kind")+r.FormValue("sure")), http.StatusSeeOther)
	})
}

func read(name string) []byte {
	text, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return text
}

func (s *site) page(w http.ResponseWriter, r *http.Request) {
	p := s.pages[r.URL.Path]
	if p.script != "" {
		p.markup += `<script src="/own.js?of=` + r.URL.Path + `"></script>`
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	fmt.Fprint(w, strings.Replace(string(read("good.html")), "<!-- here -->", p.markup+"<p>"+r.FormValue("name")+"</p>", 1))
}

// keys lets one person register passkeys and log in with them.
type keys struct {
	*passkeys.Verifier
	owner ports.PasskeyOwner
	state []byte
}

func (s *site) keys(t *testing.T) *keys {
	t.Helper()
	k := &keys{
		Verifier: check.Must(passkeys.New(passkeys.Site{Host: "localhost", Origin: s.origin, Name: "pgherd"}))(t),
		owner:    ports.PasskeyOwner{Handle: []byte("ada"), Email: "ada@example.org", Name: "Ada"},
	}
	steps := map[string]func(body []byte) ([]byte, error){
		"/register/begin": func([]byte) (options []byte, err error) {
			options, k.state, err = k.BeginRegistration(k.owner)
			return options, err
		},
		"/register/finish": func(body []byte) ([]byte, error) {
			_, record, err := k.FinishRegistration(k.owner, k.state, body)
			k.owner.Records = append(k.owner.Records, record)
			return []byte(`"registered"`), err
		},
		"/enter/begin": func([]byte) (options []byte, err error) {
			options, k.state, err = k.BeginLogIn()
			return options, err
		},
		"/enter/finish": func(body []byte) ([]byte, error) {
			_, _, err := k.FinishLogIn(k.state, body, func([]byte) (ports.PasskeyOwner, error) { return k.owner, nil })
			return []byte(`"logged in"`), err
		},
	}
	for path, step := range steps {
		s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				body, err = step(body)
			}
			if err != nil {
				body, _ = json.Marshal("refused by the server: " + err.Error())
			}
			_, _ = w.Write(body)
		})
	}
	return k
}
