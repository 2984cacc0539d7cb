// Package objectstore runs a real object store that speaks S3, with TLS, for tests.
package objectstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Bucket is one that every Server has.
const Bucket = "backups"

// SecretKey is that of the access key.
const SecretKey = "a secret of the tests"

// AccessKey is who has it.
const AccessKey = "tester"

// Server is a running object store. What it has is kept over a kill.
type Server struct {
	dir, address, cert, key string
	ca                      *cluster.CA
	process                 *exec.Cmd
	start                   func(*exec.Cmd) error
	done                    chan struct{} // closed when the process has ended
	log                     bytes.Buffer
}

// Start starts a store that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := check.Must(Open(t.TempDir()))(t)
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the object store: %s", s.log.String())
		}
	})
	return s
}

// Open starts a store that has its files in an empty folder. Kill ends it.
func Open(dir string) (*Server, error) {
	ca, err := cluster.OpenCA(filepath.Join(dir, "ca"))
	if err != nil {
		return nil, err
	}
	port, err := cluster.FreePort("127.0.0.1")
	if err != nil {
		return nil, err
	}
	return OpenAt(dir, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), ca, "127.0.0.1")
}

// OpenAt does so at an address, with a certificate of an authority for names, of which the address is one.
func OpenAt(dir, address string, ca *cluster.CA, names ...string) (*Server, error) {
	return OpenOn((*exec.Cmd).Start, dir, address, ca, names...)
}

// OpenOn does so where start starts a process, such as on another machine, which has the address.
func OpenOn(start func(*exec.Cmd) error, dir, address string, ca *cluster.CA, names ...string) (*Server, error) {
	s := &Server{dir: dir, address: address, ca: ca, start: start}
	pair, err := s.ca.Issue("objectstore", names...)
	if err != nil {
		return nil, err
	}
	s.cert, s.key = pair.CertFile, pair.KeyFile
	for _, dir := range []string{s.Objects(), filepath.Join(s.dir, "attributes")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(s.secretFile(), []byte(SecretKey+"\n"), 0o600); err != nil {
		return nil, err
	}
	return s, s.Launch()
}

// Objects is the folder in which the store has an object as a file.
func (s *Server) Objects() string { return filepath.Join(s.dir, "buckets", Bucket) }

// Received is how many bytes the store has on its disk, of uploads that are not finished, too.
func (s *Server) Received(t testing.TB) (sum int64) {
	t.Helper()
	check.NoError(t, filepath.WalkDir(filepath.Join(s.dir, "buckets"), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return ignoreMissing(err)
	}))
	return sum
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Server) secretFile() string { return filepath.Join(s.dir, "secret") }

// Run is Launch for a test.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	check.NoError(t, s.Launch())
}

// Launch starts a store that was killed, and returns when it answers.
func (s *Server) Launch() error {
	folder, err := toolchain.Folder(toolchain.ObjectStore)
	if err != nil {
		return err
	}
	s.process = exec.Command(filepath.Join(folder, "bin", "objectstore"), "--listen", s.address, "--cert", s.cert, "--key", s.key,
		"--buckets", filepath.Join(s.dir, "buckets"), "--attributes", filepath.Join(s.dir, "attributes"))
	s.process.Env = []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey}
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.start(s.process); err != nil {
		return err
	}
	s.done = make(chan struct{})
	go func(process *exec.Cmd, done chan struct{}) {
		_ = process.Wait() // it is killed
		close(done)
	}(s.process, s.done)
	for began := time.Now(); !s.answers(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > check.Patience {
			s.Kill()
			return fmt.Errorf("the object store does not answer: %s", s.log.String())
		}
	}
	return nil
}

func (s *Server) answers() bool {
	text, err := os.ReadFile(s.ca.CertFile())
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+"/health", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Kill ends the store as a crash does.
func (s *Server) Kill() {
	_ = s.process.Process.Kill() // it may have ended
	<-s.done
}

// Done is closed when the store of the last start has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Pid is the process ID of the store of the last start.
func (s *Server) Pid() int { return s.process.Process.Pid }

// Freeze stops the store, which still takes connections; Thaw lets it go on.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	check.NoError(t, s.process.Process.Signal(syscall.SIGSTOP))
}

// Thaw lets the store go on.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	check.NoError(t, s.process.Process.Signal(syscall.SIGCONT))
}

// Client asks the store directly.
func (s *Server) Client(t testing.TB) *minio.Core {
	t.Helper()
	text := check.Must(os.ReadFile(s.ca.CertFile()))(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return check.Must(minio.NewCore(s.address, &minio.Options{
		Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Secure: true, BucketLookup: minio.BucketLookupPath,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
	}))(t)
}

// Flags are those of an agent that keeps its backups in the store below a prefix.
func (s *Server) Flags(prefix string) []string {
	c := s.Config(prefix)
	return []string{
		"--s3-endpoint", c.Endpoint, "--s3-bucket", c.Bucket, "--s3-prefix", c.Prefix, "--s3-path-style", "--s3-ca-file", c.CAFile,
		"--s3-access-key-id", c.AccessKeyID, "--s3-secret-key-file", c.SecretKeyFile,
	}
}

// Blobs is the folder in which the store has what is below a prefix, as files.
func (s *Server) Blobs(prefix string) string { return filepath.Join(s.Objects(), prefix) }

// Config is what an agent needs to use the store below a prefix.
func (s *Server) Config(prefix string) s3.Config {
	return s3.Config{
		Endpoint: "https://" + s.address, Bucket: Bucket, Prefix: prefix, PathStyle: true, CAFile: s.ca.CertFile(),
		AccessKeyID: AccessKey, SecretKeyFile: s.secretFile(),
	}
}
