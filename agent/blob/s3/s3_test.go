package s3_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/blob/s3"
)

func TestS3(t *testing.T) {
	t.Parallel()
	server := objectstore.Start(t)
	var n atomic.Int64
	t.Run("store", func(t *testing.T) {
		conformance.Blobs(t, t.TempDir(), func(t *testing.T) blob.Store {
			t.Helper()
			return check.Must(s3.New(server.Config(fmt.Sprintf("of/test-%d", n.Add(1)))))(t)
		})
	})
}

const name = "of/one.bytes"

// impatient is a store whose connections may stand still for a second only.
func impatient(t *testing.T, server *objectstore.Server) *s3.Store {
	t.Helper()
	config := server.Config("prefix")
	config.Stall = time.Second
	return check.Must(s3.New(config))(t)
}

func file(t *testing.T, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	check.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("0123456789abcdef"), size/16), 0o600))
	return path
}

func size(t *testing.T, s blob.Store) (int, error) {
	t.Helper()
	r, _, err := s.Open(t.Context(), name)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	return int(n), err
}

// A store that is killed or frozen in the middle of an upload fails it within bounds, the file stays, and moving it again works.
func TestStoreGoesAwayDuringAnUpload(t *testing.T) {
	t.Parallel()
	const large = 256 << 20
	for what, happens := range map[string]struct {
		away, back func(*objectstore.Server, testing.TB)
	}{
		"killed": {func(s *objectstore.Server, _ testing.TB) { s.Kill() }, (*objectstore.Server).Run},
		"frozen": {(*objectstore.Server).Freeze, (*objectstore.Server).Thaw},
	} {
		t.Run(what, func(t *testing.T) {
			server := objectstore.Start(t)
			store := impatient(t, server)
			path := file(t, large)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			failed := make(chan error, 1)
			go func() { failed <- store.Move(ctx, path, name) }()
			check.Eventually(t, "nothing arrives", func() bool { return server.Received(t) > 32<<20 })
			happens.away(server, t)
			if err := <-failed; err == nil || ctx.Err() != nil {
				t.Errorf("%v, %v", err, ctx.Err())
			}
			happens.back(server, t)
			if _, err := size(t, store); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("half an upload is there: %v", err)
			}
			check.NoError(t, store.Move(t.Context(), path, name))
			if n, err := size(t, store); n != large || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

// Who reads waits for a store that is away for a moment, and goes on where it was.
func TestStoreGoesAwayWhileItIsRead(t *testing.T) {
	t.Parallel()
	server := objectstore.Start(t)
	store := impatient(t, server)
	check.NoError(t, store.Move(t.Context(), file(t, 64<<20), name))
	r, _, err := store.Open(t.Context(), name)
	check.NoError(t, err)
	defer r.Close()
	first := make([]byte, 1<<20)
	check.Must(io.ReadFull(r, first))(t)
	server.Kill()
	time.AfterFunc(time.Second, func() { server.Run(t) })
	rest := check.Must(io.ReadAll(r))(t)
	if all := slices.Concat(first, rest); len(all) != 64<<20 || !bytes.Equal(all[:16], []byte("0123456789abcdef")) ||
		!bytes.Equal(all[:16<<20], all[48<<20:]) {
		t.Errorf("%d bytes, or others", len(all))
	}
}

// One that stays away, or has another object of the name by now, is an error, and not the end of the file.
func TestReadingFails(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*testing.T, *objectstore.Server, *s3.Store){
		"away": func(_ *testing.T, server *objectstore.Server, _ *s3.Store) { server.Kill() },
		"replaced": func(t *testing.T, _ *objectstore.Server, s *s3.Store) {
			t.Helper()
			check.NoError(t, s.Move(t.Context(), file(t, 64<<20), name))
		},
		"deleted": func(t *testing.T, _ *objectstore.Server, s *s3.Store) {
			t.Helper()
			check.NoError(t, s.Delete(t.Context(), name))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := objectstore.Start(t)
			store := impatient(t, server)
			path := file(t, 64<<20)
			check.NoError(t, os.WriteFile(path, append(check.Must(os.ReadFile(path))(t), "another end"...), 0o600))
			check.NoError(t, store.Move(t.Context(), path, name))
			r, _, err := store.Open(t.Context(), name)
			check.NoError(t, err)
			defer r.Close()
			check.Must(r.Read(make([]byte, 1000)))(t)
			change(t, server, store)
			if n, err := io.Copy(io.Discard, r); err == nil || n > 32<<20 {
				t.Errorf("%d bytes more, %v", n, err)
			}
		})
	}
}

// What an operator has set wrongly is said in one line that names it.
func TestExplain(t *testing.T) {
	t.Parallel()
	server := objectstore.Start(t)
	other := filepath.Join(t.TempDir(), "other")
	check.NoError(t, os.WriteFile(other, []byte("another secret"), 0o600))
	for what, c := range map[string]struct {
		change func(*s3.Config)
		want   string
	}{
		"bucket":  {func(c *s3.Config) { c.Bucket = "none-such" }, "there is no such bucket; make it, or name another one"},
		"key":     {func(c *s3.Config) { c.AccessKeyID = "nobody" }, "the store does not know the access key nobody; check its ID"},
		"secret":  {func(c *s3.Config) { c.SecretKeyFile = other }, "the secret key in " + other + " is not that of the access key"},
		"CA":      {func(c *s3.Config) { c.CAFile = "" }, "its certificate is of an authority that is not trusted"},
		"name":    {func(c *s3.Config) { c.Endpoint = "https://none.invalid" }, "the name none.invalid cannot be found"},
		"address": {func(c *s3.Config) { c.Endpoint = "https://127.0.0.1:1" }, "nothing listens there"},
		"identity": {
			func(c *s3.Config) { c.Endpoint = strings.Replace(c.Endpoint, "127.0.0.1", "localhost", 1) }, "wanted to match localhost",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			config := server.Config("prefix")
			config.Stall = 2 * time.Second
			c.change(&config)
			store := check.Must(s3.New(config))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := store.Move(ctx, file(t, 16), name)
			got := store.Explain(err)
			if err == nil || !strings.Contains(got, c.want) || strings.Contains(got, "\n") ||
				!strings.HasPrefix(got, "the bucket "+config.Bucket+" at "+config.Endpoint+": ") {
				t.Errorf("%v is explained by %q, want %q", err, got, c.want)
			}
		})
	}
}

// What the server of these tests cannot be brought to answer.
func TestExplainAnswers(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct {
		status int
		want   string
	}{
		"RequestTimeTooSkewed":         {403, "this machine's clock and the store's are more than a few minutes apart; set the clock"},
		"AuthorizationHeaderMalformed": {400, "the region us-east-1 is not the bucket's; the store says: why"},
		"AccessDenied":                 {403, `it must read, write, list and delete objects below "prefix/"`},
		"QuotaExceeded":                {403, "the store is full"},
		"SlowDown":                     {503, "the store answers 503 SlowDown: why"},
		"Strange":                      {403, "the store refuses the access key tester, or what it asks for (Strange why)"},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(c.status)
				_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>why</Message></Error>", code)
			}))
			defer server.Close()
			dir := t.TempDir()
			config := s3.Config{
				Endpoint: server.URL, Bucket: "backups", Prefix: "prefix", PathStyle: true, CAFile: filepath.Join(dir, "ca"),
				AccessKeyID: "tester", SecretKeyFile: filepath.Join(dir, "secret"),
			}
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			check.NoError(t, errors.Join(os.WriteFile(config.CAFile, ca, 0o600), os.WriteFile(config.SecretKeyFile, []byte("s"), 0o600)))
			store := check.Must(s3.New(config))(t)
			if got := store.Explain(store.Move(t.Context(), file(t, 16), name)); !strings.HasSuffix(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	empty := filepath.Join(t.TempDir(), "empty")
	check.NoError(t, errors.Join(os.WriteFile(secret, []byte("s"), 0o600), os.WriteFile(empty, []byte("\n"), 0o600)))
	good := s3.Config{Endpoint: "https://s3.example.com", Bucket: "b", AccessKeyID: "a", SecretKeyFile: secret}
	check.Must(s3.New(good))(t)
	for what, change := range map[string]func(*s3.Config){
		"no endpoint":       func(c *s3.Config) { c.Endpoint = "" },
		"no TLS":            func(c *s3.Config) { c.Endpoint = "http://s3.example.com" },
		"a path":            func(c *s3.Config) { c.Endpoint += "/bucket" },
		"a password":        func(c *s3.Config) { c.Endpoint = "https://a:b@s3.example.com" },
		"a prefix with ..":  func(c *s3.Config) { c.Prefix = "a/../b" },
		"a slash at an end": func(c *s3.Config) { c.Prefix = "a/" },
		"no key":            func(c *s3.Config) { c.AccessKeyID = "" },
		"no secret":         func(c *s3.Config) { c.SecretKeyFile = filepath.Join(secret, "none") },
		"an empty secret":   func(c *s3.Config) { c.SecretKeyFile = empty },
		"no CA":             func(c *s3.Config) { c.CAFile = filepath.Join(empty, "none") },
		"a CA of nobody":    func(c *s3.Config) { c.CAFile = secret },
	} {
		c := good
		if change(&c); accepts(c) {
			t.Errorf("%s: accepted", what)
		}
	}
}

// A CA that was changed is taken from its file without a restart.
func TestCAFileIsFollowed(t *testing.T) {
	t.Parallel()
	server := objectstore.Start(t)
	config := server.Config("prefix")
	right := check.Must(os.ReadFile(config.CAFile))(t)
	config.CAFile = filepath.Join(t.TempDir(), "ca")
	check.NoError(t, os.WriteFile(config.CAFile, check.Must(os.ReadFile(objectstore.Start(t).Config("other").CAFile))(t), 0o600))
	store := check.Must(s3.New(config))(t)
	if err := store.Delete(t.Context(), name); err == nil {
		t.Fatal("another CA is taken")
	}
	check.NoError(t, os.WriteFile(config.CAFile, right, 0o600))
	check.NoError(t, store.Delete(t.Context(), name))
}

// A secret key that was changed at the store is taken from the file without a restart.
func TestSecretFileIsFollowed(t *testing.T) {
	t.Parallel()
	server := objectstore.Start(t)
	config := server.Config("prefix")
	right := check.Must(os.ReadFile(config.SecretKeyFile))(t)
	config.SecretKeyFile = filepath.Join(t.TempDir(), "secret")
	check.NoError(t, os.WriteFile(config.SecretKeyFile, []byte("the former"), 0o600))
	store := check.Must(s3.New(config))(t)
	if err := store.Delete(t.Context(), name); err == nil {
		t.Fatal("the former key is taken")
	}
	check.NoError(t, os.WriteFile(config.SecretKeyFile, right, 0o600))
	check.NoError(t, store.Delete(t.Context(), name))
}

func accepts(c s3.Config) bool {
	_, err := s3.New(c)
	return err == nil
}

// What a process leaves that is killed in an upload can be removed, but not what another one is sending.
func TestClean(t *testing.T) {
	t.Parallel()
	server := objectstore.Start(t)
	store := check.Must(s3.New(server.Config("prefix")))(t)
	core := server.Client(t)
	for _, key := range []string{"prefix/" + name, "prefix/of/kept", "other/" + name} {
		check.Must(core.NewMultipartUpload(t.Context(), objectstore.Bucket, key, minio.PutObjectOptions{}))(t)
	}
	check.NoError(t, store.Clean(t.Context(), func(name string) bool { return name == "of/kept" }))
	var left []string
	for u := range core.ListIncompleteUploads(t.Context(), objectstore.Bucket, "", true) {
		check.NoError(t, u.Err)
		left = append(left, u.Key)
	}
	if slices.Sort(left); !slices.Equal(left, []string{"other/" + name, "prefix/of/kept"}) {
		t.Errorf("left: %q", left)
	}
}
