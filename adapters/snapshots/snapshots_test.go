package snapshots_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/snapshots"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
)

const (
	own   id.InstallationID = "33333333-3333-4333-8333-333333333333"
	other id.InstallationID = "44444444-4444-4444-8444-444444444444"
)

var (
	name  = snapshot.NameAt(time.Date(2026, time.January, 31, 9, 30, 0, 0, time.UTC))
	later = snapshot.NameAt(name.At().Add(time.Second))
)

// metadata are those of an installation that have a text.
type metadata struct {
	snapshots.Metadata
	of   id.InstallationID
	text string
}

func (m metadata) Installation(context.Context) (id.InstallationID, error) { return m.of, nil }

func (m metadata) Dump(_ context.Context, w io.Writer, now time.Time) error {
	if !now.Equal(name.At()) {
		return errors.New("it is dumped as of another time")
	}
	_, err := io.WriteString(w, m.text)
	return err
}

var errOtherText = errors.New("it is another text")

// of takes snapshots of metadata that have a text of some MiB.
func of(ring *secretbox.Box, installation id.InstallationID) *snapshots.Snapshots {
	text := strings.Repeat("all that there is. ", 200_000)
	return snapshots.New(metadata{of: installation, text: text}, ring, "v7", func(r io.Reader) error {
		got, err := io.ReadAll(r)
		if err == nil && string(got) != text {
			err = errOtherText
		}
		return err
	})
}

func ring(t *testing.T) *secretbox.Box {
	t.Helper()
	return check.Must(secretbox.Create(filepath.Join(t.TempDir(), "ring")))(t)
}

func take(t *testing.T, s *snapshots.Snapshots) []byte {
	t.Helper()
	taken := check.Must(s.Take(t.Context(), name))(t)
	text := check.Must(io.ReadAll(io.NewSectionReader(taken, 0, taken.Size())))(t)
	check.NoError(t, taken.Close())
	return text
}

// A snapshot is read as it was, and by nobody else, under no other name, and not where any part of it was changed.
func TestSnapshots(t *testing.T) {
	box := ring(t)
	s := of(box, own)
	text := take(t, s)
	if len(text) > 100<<10 {
		t.Errorf("it has %d bytes", len(text))
	}
	flipped := func(at int) []byte {
		changed := bytes.Clone(text)
		changed[at] ^= 1
		return changed
	}
	broken := errors.New("broken")
	for what, c := range map[string]struct {
		by   *snapshots.Snapshots
		name snapshot.Name
		from io.Reader
		want error
	}{
		"as it is":             {s, name, iotest.OneByteReader(bytes.NewReader(text)), nil},
		"another name":         {s, later, bytes.NewReader(text), snapshots.ErrOther},
		"another installation": {of(box, other), name, bytes.NewReader(text), snapshots.ErrOther},
		"another ring":         {of(ring(t), own), name, bytes.NewReader(text), snapshots.ErrOtherRing},
		"a newer format": {s, name, bytes.NewReader(bytes.Replace(text, []byte(`"format":1`), []byte(`"format":2`), 1)),
			snapshots.ErrNewer},
		"another head": {s, name, bytes.NewReader(bytes.Replace(text, []byte(`"program":"v7"`), []byte(`"program":"v8"`), 1)),
			snapshots.ErrDamaged},
		"nothing":       {s, name, strings.NewReader(""), snapshots.ErrNone},
		"another file":  {s, name, strings.NewReader(strings.Repeat("text\n", 100)), snapshots.ErrNone},
		"a flipped bit": {s, name, bytes.NewReader(flipped(len(text) / 2)), snapshots.ErrDamaged},
		"the last bit":  {s, name, bytes.NewReader(flipped(len(text) - 1)), snapshots.ErrDamaged},
		"no last byte":  {s, name, bytes.NewReader(text[:len(text)-1]), snapshots.ErrDamaged},
		"only its head": {s, name, bytes.NewReader(text[:bytes.IndexByte(text[40:], '\n')+41]), snapshots.ErrDamaged},
		"half a head":   {s, name, bytes.NewReader(text[:60]), snapshots.ErrDamaged},
		"more":          {s, name, io.MultiReader(bytes.NewReader(text), strings.NewReader("x")), snapshots.ErrDamaged},
		"it breaks off": {s, name, io.MultiReader(bytes.NewReader(text[:len(text)/2]), iotest.ErrReader(broken)), broken},
	} {
		if err := c.by.Check(t.Context(), c.name, c.from); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	head := check.Must(snapshots.Open(bytes.NewReader(text)))(t)
	keys := check.Must(box.Keys())(t)
	if head.Program != "v7" || head.InstallationID != own || head.Name != name || head.Ring != keys.Own {
		t.Errorf("%+v", head.Head)
	}
}

// No text gets the head read for more than it is.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("pgherd snapshot of metadata\n{\"format\":1}\n"))
	f.Add([]byte("pgherd snapshot of metadata\n{\"format\":1,\"key\":\"\"}\nabc"))
	f.Add([]byte("pgherd snapshot"))
	box, err := secretbox.Create(filepath.Join(f.TempDir(), "ring"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := snapshots.Open(bytes.NewReader(text))
		if err == nil {
			err = o.Read(box, o.InstallationID, o.Name, func(io.Reader) error { return nil })
		}
		if err == nil {
			t.Errorf("%q is read as a snapshot", text)
		}
	})
}
