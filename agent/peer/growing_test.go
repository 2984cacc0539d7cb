package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
)

const written backup.Filename = "20260303_120000.sql.gz"

// writing is a file that passes, of the same operation as that of the source, while it is written.
type writing struct {
	draft *store.Draft
	file  *store.File
	m     backup.Manifest
}

func (s *source) writes(t *testing.T, at time.Time) *writing {
	t.Helper()
	w := &writing{
		draft: check.Must(s.files.Passing().Begin(t.Context(), db, written))(t),
		m:     backup.Manifest{FormatVersion: 3, DatabaseID: db, OperationID: op, Filename: written, CreatedAt: at, DatabaseBytes: 7},
	}
	w.file = check.Must(w.draft.Data())(t)
	head := check.Must(json.Marshal(w.m))(t)
	w.draft.Show(w.file, store.Growing{OperationID: op, CreatedAt: at, Head: head})
	return w
}

// ends completes the set.
func (w *writing) ends(t *testing.T) {
	t.Helper()
	w.m.File = check.Must(w.file.Finish())(t)
	schema := check.Must(w.draft.Sidecar())(t)
	w.m.Sidecar = check.Must(schema.Finish())(t)
	check.Must(w.draft.Prepare(w.m))(t)
	check.NoError(t, w.draft.Commit(t.Context(), func(string) {}))
	check.NoError(t, w.draft.End(t.Context()))
}

// A file is read behind who writes it, over connections that break off, and the rest of its set when it is complete.
func TestAFileComesWhileItIsWritten(t *testing.T) {
	s := newSource(t)
	w := s.writes(t, createdAt)
	address, conns := breaking(t, s.address, 1<<20)
	k := known(address, s.ca, token)
	first := check.Must(k.Begun(t.Context(), op, written))(t)
	if first.File.Name != "" || first.DatabaseBytes != 7 {
		t.Errorf("%+v", first)
	}
	data, size, err := k.Open(t.Context(), first, File, 4<<20)
	check.NoError(t, err)
	defer data.Close()
	if size != server.Growing {
		t.Errorf("its size is %d", size)
	}
	check.Must(w.file.Write(s.data[:5<<19]))(t)
	begins := make([]byte, 1<<19) // what is not sealed yet does not come
	check.Must(io.ReadFull(data, begins))(t)
	go func() {
		_, _ = w.file.Write(s.data[5<<19:]) // what does not come is missed below
		w.ends(t)
	}()
	ends, err := io.ReadAll(data)
	if err != nil || !bytes.Equal(slices.Concat(begins, ends), s.data) {
		t.Errorf("%d bytes and %d more, %v", len(begins), len(ends), err)
	}
	if n := conns.Load(); n < 3 {
		t.Errorf("it took %d connections", n)
	}
	for _, part := range []Part{Schema, Manifest} {
		src, _, err := k.Open(t.Context(), begun(written), part, 4<<20)
		check.NoError(t, err)
		check.NoError(t, src.Close())
	}
	last := check.Must(k.Begun(t.Context(), op, written))(t)
	if last.File.Name == "" || last.DatabaseBytes != 7 {
		t.Errorf("at last: %+v", last)
	}
}

// What comes of a file that is given up is worth nothing: who reads it learns that another one is made, or that none is.
func TestAFileThatIsMadeAnew(t *testing.T) {
	s := newSource(t)
	for what, anew := range map[string]bool{"another one": true, "none": false} {
		w := s.writes(t, createdAt)
		k := known(s.address, s.ca, token)
		k.Patience = 300 * time.Millisecond
		data, _, err := k.Open(t.Context(), begun(written), File, 4<<20)
		check.NoError(t, err)
		check.Must(w.file.Write(s.data))(t)
		check.Must(io.ReadFull(data, make([]byte, 1<<19)))(t)
		check.NoError(t, w.file.Close())
		check.NoError(t, w.draft.End(t.Context()))
		if anew {
			w = s.writes(t, createdAt.Add(time.Second))
		}
		_, err = io.Copy(io.Discard, data)
		var away *AwayError
		if !errors.As(err, &away) || errors.Is(away.Cause, errAnew) != anew {
			t.Errorf("%s: %v", what, err)
		}
		check.NoError(t, data.Close())
		if anew {
			check.NoError(t, w.file.Close())
			check.NoError(t, w.draft.End(t.Context()))
		}
	}
}

// A file that is being written may give nothing for long, and a connection may break off unseen meanwhile. The peer was not away
// for that: it is asked again.
func TestAFileThatBreaksOffAfterALongSilence(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get(fromKey) != "0" {
			_, _ = w.Write([]byte("and ends"))
			return
		}
		_, _ = w.Write([]byte("it begins "))
		_ = http.NewResponseController(w).Flush()
		time.Sleep(400 * time.Millisecond)
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	k := known(strings.TrimPrefix(s.URL, "https://"), certificate(s), token)
	k.Patience = 100 * time.Millisecond
	data, _, err := k.Open(t.Context(), begun(written), File, 4<<20)
	check.NoError(t, err)
	defer data.Close()
	if text, err := io.ReadAll(data); string(text) != "it begins and ends" {
		t.Errorf("%q, %v", text, err)
	}
}

// What is made only at the end is waited for, and not for ever.
func TestWhatIsNotMadeYet(t *testing.T) {
	s := newSource(t)
	w := s.writes(t, createdAt)
	k := known(s.address, s.ca, token)
	k.Patience = 300 * time.Millisecond
	var away *AwayError
	for _, part := range []Part{Schema, Manifest} {
		if _, _, err := k.Open(t.Context(), begun(written), part, 4<<20); !errors.As(err, &away) {
			t.Errorf("%s: %v", part, err)
		}
	}
	check.NoError(t, w.file.Close())
	check.NoError(t, w.draft.End(t.Context()))
	if _, err := k.Begun(t.Context(), op, written); !errors.As(err, &away) {
		t.Errorf("nothing is made: %v", err)
	}
}
