package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster"
)

const (
	db      id.DatabaseID   = "11111111-1111-4111-8111-111111111111"
	otherDB id.DatabaseID   = "11111111-1111-4111-8111-111111111112"
	op      id.OperationID  = "22222222-2222-4222-8222-222222222222"
	otherOp id.OperationID  = "22222222-2222-4222-8222-222222222223"
	name    backup.Filename = "20260301_120000.sql.gz"
	other   backup.Filename = "20260302_120000.sql.gz"
	token                   = "the token that admits to the operation"
)

// createdAt is when all files were begun.
var createdAt = time.Date(2026, 3, 1, 12, 0, 0, 1, time.UTC)

// source is an agent's listener with an admission, and what it has to give.
type source struct {
	*Admissions
	address, ca string
	data        []byte // of the file that passes
}

func newSource(t *testing.T) *source {
	t.Helper()
	files := store.New(t.TempDir(), store.Options{Reserve: 1, Key: func(context.Context, id.DatabaseID) ([]byte, error) {
		return make([]byte, sealed.KeyBytes), nil
	}})
	check.NoError(t, files.Sweep())
	s := &source{Admissions: NewAdmissions(nil, files, zap.NewNop()), data: make([]byte, 3<<20)}
	r := rand.NewChaCha8([32]byte{1})
	check.Must(r.Read(s.data))(t)
	keep(t, files.Passing(), db, op, name, s.data)
	keep(t, files.Passing(), db, otherOp, other, []byte("another operation's"))
	keep(t, files.Passing(), otherDB, op, other, []byte("another database's"))
	keep(t, files, db, otherOp, name, []byte("a backup"))
	keep(t, files, otherDB, otherOp, name, []byte("another database's backup"))
	s.loaded = true
	check.NoError(t, s.put(op, db, command.HashToken(token)))

	ca := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	pair := check.Must(ca.Issue("agent", "127.0.0.1"))(t)
	own := check.Must(tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile))(t)
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	agent := check.Must(server.New(server.Config{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &own, nil },
		Secrets:     func() []string { return []string{"the control plane's secret"} }, Guests: s.Routes(), Log: zap.NewNop(),
		Refusal: func(err error) *command.Refusal {
			var no *command.Refusal
			if errors.As(err, &no) {
				return no
			}
			return command.Refuse(command.ReasonNotFound, "there is none")
		},
	}))(t)
	go func() { _ = agent.Serve(t.Context(), listener) }() // it ends with the test
	s.address, s.ca = listener.Addr().String(), string(check.Must(os.ReadFile(ca.CertFile()))(t))
	return s
}

// keep stores a set of files.
func keep(t *testing.T, s *store.Store, of id.DatabaseID, made id.OperationID, as backup.Filename, data []byte) {
	t.Helper()
	d := check.Must(s.Begin(t.Context(), of, as))(t)
	m := backup.Manifest{FormatVersion: 3, DatabaseID: of, OperationID: made, Filename: as, CreatedAt: createdAt}
	for _, part := range []struct {
		create func() (*store.File, error)
		text   []byte
		digest *backup.FileDigest
	}{{d.Data, data, &m.File}, {d.Sidecar, []byte("schema"), &m.Sidecar}} {
		file := check.Must(part.create())(t)
		check.Must(file.Write(part.text))(t)
		*part.digest = check.Must(file.Finish())(t)
	}
	check.Must(d.Prepare(m))(t)
	check.NoError(t, d.Commit(t.Context(), func(string) {}))
	check.NoError(t, d.End(t.Context()))
}

// known is who was told of a peer at an address.
func known(address, ca, shown string) *Known {
	k := NewKnown()
	k.Patience = 3 * time.Second
	k.Note(op, command.Peer{URL: "https://" + address, CA: ca, Token: shown})
	return k
}

// begun is what is known of the file of a name.
func begun(of backup.Filename) backup.Manifest {
	return backup.Manifest{OperationID: op, Filename: of, CreatedAt: createdAt}
}

func whole(t *testing.T, k *Known, part Part) ([]byte, error) {
	t.Helper()
	file, size, err := k.Open(t.Context(), begun(name), part, 4<<20)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err == nil && int64(len(text)) != size {
		t.Errorf("%d bytes of %d", len(text), size)
	}
	return text, err
}

// breaking carries connections to an address, and breaks each off after so many bytes of answer.
func breaking(t *testing.T, to string, after int64) (address string, conns *atomic.Int64) {
	t.Helper()
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	conns = new(atomic.Int64)
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() {
				defer near.Close()
				far, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer far.Close()
				go func() { _, _ = io.Copy(far, near) }()
				_, _ = io.CopyN(near, far, after)
			}()
		}
	}()
	return l.Addr().String(), conns
}

func TestAFileComesOverConnectionsThatBreakOff(t *testing.T) {
	s := newSource(t)
	address, conns := breaking(t, s.address, 1<<20)
	got, err := whole(t, known(address, s.ca, token), File)
	if err != nil || !bytes.Equal(got, s.data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if n := conns.Load(); n < 3 || n > 8 {
		t.Errorf("it took %d connections", n)
	}
	for _, part := range []Part{Head, Schema, Manifest} {
		if got, err := whole(t, known(s.address, s.ca, token), part); err != nil || len(got) == 0 {
			t.Errorf("%s: %q, %v", part, got, err)
		}
	}
}

// asked returns the status and all else of an answer that could tell something.
func (s *source) asked(t *testing.T, path, shown string) (status int, said string) {
	t.Helper()
	conn := check.Must(dial(t.Context(), command.Peer{CA: s.ca}, s.address))(t)
	defer conn.Close()
	check.Must(io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+shown+"\r\n"+
		protocol.Header+": "+strconv.Itoa(command.Protocol)+"\r\nConnection: close\r\n\r\n"))(t)
	text := string(check.Must(io.ReadAll(conn))(t))
	status = check.Must(strconv.Atoi(text[9:12]))(t)
	return status, dateLine(text)
}

// dateLine is a text without its line with the date.
func dateLine(text string) string {
	before, after, _ := strings.Cut(text, "Date: ")
	_, after, _ = strings.Cut(after, "\r\n")
	return before + after
}

// Who is admitted reaches its peer, and hears otherwise why not.
func TestAPeerIsReached(t *testing.T) {
	s := newSource(t)
	stranger := command.Peer{URL: "https://" + s.address, CA: s.ca, Token: token + "x"}
	admitted, away := stranger, stranger
	admitted.Token = token
	gone := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	away.URL = "https://" + gone.Addr().String()
	check.NoError(t, gone.Close())
	for why, p := range map[string]command.Peer{"": admitted, "does not admit": stranger, "connection refused": away} {
		found, err := Reach(t.Context(), command.ReachPeer{Operation: op, Peer: p})
		if err != nil || (why == "") != (found.Why == "") || !strings.Contains(found.Why, why) {
			t.Errorf("%q, %v, not %q", found.Why, err, why)
		}
	}
}

func TestATokenOpensNothingElse(t *testing.T) {
	s := newSource(t)
	mine := "/v1/peers/" + string(op)
	stem := name.Stem()
	file := mine + "/passing/" + string(name) + "/file?made=" + made(createdAt)
	for path, want := range map[string]int{
		mine:                               http.StatusOK,
		file:                               http.StatusOK,
		file + "&from=3145728":             http.StatusOK,
		mine + "/backups/" + stem + ".set": http.StatusOK,
		mine + "/passing/" + string(other) + "/file":                      http.StatusNotFound, // of another operation
		mine + "/passing/" + string(name) + "/data":                       http.StatusNotFound,
		mine + "/passing/" + string(name) + "/file":                       http.StatusConflict, // nobody says which
		mine + "/passing/" + string(name) + "/manifest":                   http.StatusConflict,
		mine + "/passing/" + string(name) + "/head":                       http.StatusOK,
		file + "&from=3145729":                                            http.StatusBadRequest,
		file + "&from=-1":                                                 http.StatusBadRequest,
		file + "&from=99999999999999999999":                               http.StatusBadRequest,
		mine + "/passing/..%2F" + string(name) + "/file":                  http.StatusNotFound,
		mine + "/backups/" + stem + ".data":                               http.StatusNotFound,
		mine + "/backups/..%2F" + string(otherDB) + "%2F" + stem + ".set": http.StatusNotFound,
		mine + "/backups/%2E%2E":                                          http.StatusNotFound,
		mine + "/backups/..%2F..%2Fowner":                                 http.StatusNotFound,
		mine + "/backups/owner":                                           http.StatusNotFound,
		mine + "/backups/" + stem + ".set%00":                             http.StatusNotFound,
		mine + "/changes/../../../commands":                               http.StatusTemporaryRedirect,
		"/v1/databases/" + string(db) + "/backups/" + string(name):        http.StatusNotFound, // which this listener lacks
		"/health": http.StatusUnauthorized,
	} {
		if status, said := s.asked(t, path, token); status != want && status/100 != 3 {
			t.Errorf("%s: %s", path, said)
		}
	}
	status, _ := s.asked(t, mine+"/passing/"+string(name)+"/file", "the control plane's secret")
	if status != http.StatusUnauthorized {
		t.Errorf("the control plane's secret is a peer's: %d", status)
	}
}

func TestStrangersAllHearTheSame(t *testing.T) {
	s := newSource(t)
	check.NoError(t, s.put(otherOp, db, command.HashToken(token+"2")))
	s.drop(otherOp)
	_, want := s.asked(t, "/v1/peers/"+string(op)+"/passing/"+string(name)+"/file", "wrong")
	for path, shown := range map[string]string{
		"/v1/peers/" + string(op) + "/passing/" + string(name) + "/file":      "",
		"/v1/peers/" + string(op) + "/passing/" + string(other) + "/schema":   "wrong",
		"/v1/peers/" + string(op) + "/backups/x":                              token + "2",
		"/v1/peers/" + string(otherOp) + "/passing/" + string(name) + "/file": token + "2", // it has ended
		"/v1/peers/33333333-2222-4222-8222-222222222223/backups/x":            token,
		"/v1/peers/x/backups/x": token,
	} {
		if _, got := s.asked(t, path, shown); got != want {
			t.Errorf("%s:\n%s", path, cmp.Diff(want, got))
		}
	}
	s.loaded = false
	if status, _ := s.asked(t, "/v1/peers/"+string(op)+"/backups/x", token); status != http.StatusServiceUnavailable {
		t.Errorf("before it is known who is admitted: %d", status)
	}
}

func TestAnEndedPeerGetsNoMore(t *testing.T) {
	s := newSource(t)
	k := known(s.address, s.ca, token)
	file, _, err := k.Open(t.Context(), begun(name), File, 4<<20)
	check.NoError(t, err)
	defer file.Close()
	check.Must(io.ReadFull(file, make([]byte, 1000)))(t)
	s.drop(op)
	_, err = io.Copy(io.Discard, file)
	var unlike *UnlikeError
	if err != nil && !errors.As(err, &unlike) { // what was sent before may be all
		t.Errorf("it broke off with %v", err)
	}
	if _, err := whole(t, k, File); !errors.As(err, &unlike) {
		t.Errorf("an ended peer: %v", err)
	}
}

func TestOnePeerCannotTakeAll(t *testing.T) {
	s := newSource(t)
	k := known(s.address, s.ca, token)
	var ends []func()
	for range mostOfPeer {
		ends = append(ends, check.Must(s.enter(s.all[op]))(t))
	}
	k.Patience = 0
	var away *AwayError
	if _, err := whole(t, k, Schema); !errors.As(err, &away) {
		t.Errorf("one more: %v", err)
	}
	for _, leave := range ends {
		leave()
	}
	check.Must(whole(t, k, Schema))(t)
}

// A peer that does not do what it should holds nobody up, gives no file, and is sent nobody's token but its own.
func TestPeersThatMisbehave(t *testing.T) {
	var led atomic.Bool
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		away   bool
	}{
		"leads elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				led.Store(true)
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, false},
		"has no end": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}, false},
		"is larger than it was said": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(5<<20))
		}, false},
		"changes its size": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(make([]byte, 1000)) // and breaks off
		}, false},
		"admits nobody": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, false},
		"has a fault":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, true},
		"says much": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(make([]byte, 1<<20))
		}, true},
		"breaks off each time": {func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, true},
		"gives no more": {func(w http.ResponseWriter, r *http.Request) {
			from, _ := strconv.Atoi(r.URL.Query().Get(fromKey))
			w.Header().Set("Content-Length", strconv.Itoa(1_000_000-from))
			if from == 0 {
				_, _ = w.Write([]byte{1})
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			s := httptest.NewTLSServer(c.answer)
			defer s.Close()
			k := known(strings.TrimPrefix(s.URL, "https://"), certificate(s), token)
			k.Patience, k.Piece = 300*time.Millisecond, 100*time.Millisecond
			_, err := whole(t, k, Schema)
			if what != "has no end" { // the end of a file that is still being written is not known
				_, err = whole(t, k, File)
			}
			var away *AwayError
			var unlike *UnlikeError
			if c.away && !errors.As(err, &away) || !c.away && !errors.As(err, &unlike) {
				t.Errorf("%v", err)
			}
		})
	}
	if led.Load() {
		t.Error("a redirect was followed")
	}
}

func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestAnotherCertificateIsNotTrusted(t *testing.T) {
	s, stranger := newSource(t), newSource(t)
	for what, ca := range map[string]string{"another CA": stranger.ca, "the machine's": ""} {
		k := known(s.address, ca, token)
		k.Patience = 0
		var away *AwayError
		if _, err := whole(t, k, File); !errors.As(err, &away) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := whole(t, known(s.address, "no PEM", token), File); err == nil {
		t.Error("a CA without a certificate is taken")
	}
}

// adopting is the taking over of a backup, whose manifest is the one that the source has.
func (s *source) adopting(t *testing.T, as backup.Filename) command.AdoptBackup {
	t.Helper()
	q := command.AdoptBackup{
		DatabaseID: db, Filename: as, SizeBytes: 8, Operation: op,
		Peer: command.Peer{URL: "https://" + s.address, CA: s.ca, Token: token},
	}
	if m, err := s.files.Manifest(t.Context(), db, as); err == nil {
		q.ManifestSHA256 = m.SHA256
	}
	return q
}

func TestABackupIsTakenOverFromAPeer(t *testing.T) {
	s := newSource(t)
	files := store.New(t.TempDir(), store.Options{Reserve: 1, Key: func(context.Context, id.DatabaseID) ([]byte, error) {
		return make([]byte, sealed.KeyBytes), nil
	}})
	check.NoError(t, files.Sweep())
	k := NewKnown()
	k.Patience = 0
	q := s.adopting(t, name)
	another := q
	another.ManifestSHA256 = strings.Repeat("0", 64)
	var damaged *store.DamagedError
	if err := k.Adopt(t.Context(), files, another); !errors.As(err, &damaged) {
		t.Errorf("another manifest: %v", err)
	}
	check.NoError(t, k.Adopt(t.Context(), files, q))
	if _, err := files.Reread(t.Context(), db, name, q.ManifestSHA256); err != nil {
		t.Errorf("what was taken over: %v", err)
	}
	if err := k.Adopt(t.Context(), files, s.adopting(t, other)); !fault.Has(err, fault.BackupNotFound) {
		t.Errorf("a backup that is not there: %v", err)
	}
	s.drop(op)
	check.NoError(t, k.Adopt(t.Context(), files, q)) // it is here already
	check.NoError(t, files.DeleteAll(t.Context(), db))
	var unlike *UnlikeError
	if err := k.Adopt(t.Context(), files, q); !errors.As(err, &unlike) {
		t.Errorf("from who does not admit: %v", err)
	}
	q.Peer.URL = "https://127.0.0.1:1"
	var away *AwayError
	if err := k.Adopt(t.Context(), files, q); !errors.As(err, &away) {
		t.Errorf("from nobody: %v", err)
	}
	if names, err := files.List(t.Context(), db); err != nil || len(names) > 0 {
		t.Errorf("left are %v, %v", names, err)
	}
}
