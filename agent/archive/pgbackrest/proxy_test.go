package pgbackrest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob/s3"
)

// The proxy answers for one object, and passes on all else as it was asked, with what is signed.
func TestTheProxy(t *testing.T) {
	store := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprint(w, r.Method, " ", r.Host, " ", r.RequestURI, " ", r.Header["Authorization"], r.Header["X-Forwarded-For"])
	}))
	t.Cleanup(store.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	check.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: store.Certificate().Raw}), 0o600))
	config := s3.Config{Endpoint: store.URL, Bucket: "b", PathStyle: true, CAFile: ca}
	p := check.Must(newProxy(config, "/k/manifest", []byte("own")))(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.certificate)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	ask := func(method, uri string) (string, error) {
		request := check.Must(http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1:"+strconv.Itoa(p.port)+uri, nil))(t)
		request.Host = "store.example"
		request.Header.Set("Authorization", "signed")
		answer, err := client.Do(request)
		if err != nil {
			return "", err
		}
		text := check.Must(io.ReadAll(answer.Body))(t)
		check.NoError(t, answer.Body.Close())
		return fmt.Sprint(answer.StatusCode, " ", string(text)), nil
	}
	for _, c := range []struct{ method, uri, want string }{
		{"GET", "/b/k/manifest", "200 own"},
		{"GET", "/b/k/manifest.copy", "418 GET store.example /b/k/manifest.copy [signed] []"},
		{"GET", "/k/manifest", "418 GET store.example /k/manifest [signed] []"},
		{"PUT", "/b/k/manifest", "418 PUT store.example /b/k/manifest [signed] []"},
		{"GET", "/b/?list-type=2&prefix=k%2Fm", "418 GET store.example /b/?list-type=2&prefix=k%2Fm [signed] []"},
	} {
		if got := check.Must(ask(c.method, c.uri))(t); got != c.want {
			t.Errorf("%s %s: %s", c.method, c.uri, got)
		}
	}
	p.close()
	client.CloseIdleConnections()
	if got, err := ask("GET", "/b/k/manifest"); err == nil {
		t.Errorf("once it is closed it answers %s", got)
	}
}

func TestWhereAStoreHasAnObject(t *testing.T) {
	for style, want := range map[bool]string{true: "https://s3.example:9000/b/k/1", false: "https://b.s3.example:9000/k/1"} {
		u := check.Must(objectURL(s3.Config{Endpoint: "https://s3.example:9000", Bucket: "b", PathStyle: style}, "/k/1"))(t)
		if u.String() != want {
			t.Error(u)
		}
	}
}
