package admin_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/snapshots"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// shelf is a folder in which a server has kept snapshots of a town's metadata.
type shelf struct {
	town
	folder       string
	installation id.InstallationID
	newest       snapshot.Name
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{town: newTown(t), folder: t.TempDir()}
	at := time.Date(2026, time.January, 31, 9, 30, 0, 0, time.UTC)
	for i := range 3 {
		s.newest = snapshot.NameAt(at.Add(time.Duration(i) * time.Minute))
		s.put(s.newest, s.taken(s.newest))
	}
	return s
}

func (s *shelf) taken(name snapshot.Name) []byte {
	s.t.Helper()
	box := check.Must(secretbox.Load(s.keyring))(s.t)
	from := snapshots.New(postgres.NewSnapshots(postgres.Config{URL: s.url}), box, "v7", nil)
	s.installation = check.Must(from.Installation(s.t.Context()))(s.t)
	taken := check.Must(from.Take(s.t.Context(), name))(s.t)
	defer taken.Close()
	return check.Must(io.ReadAll(io.NewSectionReader(taken, 0, taken.Size())))(s.t)
}

func (s *shelf) path(of id.InstallationID, name snapshot.Name) string {
	return filepath.Join(s.folder, store.SnapshotFolder, string(of), string(name))
}

func (s *shelf) put(name snapshot.Name, text []byte) {
	s.t.Helper()
	path := s.path(s.installation, name)
	check.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	check.NoError(s.t, os.WriteFile(path, text, 0o600))
}

// lost is a console of the same key ring, with a new metadata database.
func (s *shelf) lost() console {
	s.t.Helper()
	return console{t: s.t, url: clustertest.NewDatabase(s.t).URL, keyring: s.keyring}
}

// What was made by commands is there again, and can be used, with the ring that it was encrypted with.
func TestMetadataAreRebuilt(t *testing.T) {
	s := newShelf(t)
	c := s.lost()
	listed := c.lists("installation", "rebuild", "--list", "--folder="+s.folder)
	if len(listed) != 3 || listed[0]["snapshot"] != string(s.newest) || listed[0]["installationId"] != string(s.installation) {
		t.Errorf("listed: %v", listed)
	}
	made := c.does("installation", "rebuild", "--folder="+s.folder)
	if made["snapshot"] != string(s.newest) || made["program"] != "v7" || made["rows"].(float64) < 20 {
		t.Errorf("rebuilt: %v", made)
	}
	for _, list := range [][]string{
		{"account", "list"}, {"key", "list", "--account=" + s.ada}, {"server", "list"}, {"feature", "list"}, {"secrets", "keys"},
		{"ci-trust", "list", "--namespace=" + s.namespace}, {"certificate-key", "list"}, {"operator", "list"},
	} {
		was, is := check.Must(s.run(list...))(t), check.Must(c.run(list...))(t)
		if was != is {
			t.Errorf("%v:\n%s\nwas\n%s", list, is, was)
		}
	}
	log := check.Must(c.run("audit", "list", "--installation"))(t)
	if !strings.Contains(log, "metadata.rebuilt") || !strings.Contains(log, string(s.newest)) {
		t.Errorf("the log of the installation:\n%s", log)
	}
	c.refuses("is not empty", "installation", "rebuild", "--folder="+s.folder)
	earlier := s.lost()
	name := listed[2]["snapshot"].(string)
	if made := earlier.does("installation", "rebuild", "--folder="+s.folder, "--snapshot="+name); made["snapshot"] != name {
		t.Errorf("rebuilt from %v, not from %s", made["snapshot"], name)
	}
}

// What is wrong is said in a line, and leaves the metadata empty; the newest that is whole is found.
func TestMetadataThatCannotBeRebuilt(t *testing.T) {
	s := newShelf(t)
	c := s.lost()
	text := check.Must(os.ReadFile(s.path(s.installation, s.newest)))(t)
	rebuild := func(more ...string) []string {
		return append([]string{"installation", "rebuild", "--folder=" + s.folder}, more...)
	}
	this := "--snapshot=" + string(s.newest)

	c.refuses("there is no such snapshot", rebuild("--snapshot=20200101T000000.000Z")...)
	c.refuses("is that where a server keeps its backups?", "installation", "rebuild", "--folder="+t.TempDir())
	c.refuses("is no folder", "installation", "rebuild", "--folder="+filepath.Join(s.folder, "none"))
	c.refuses("give one of --folder, --s3-endpoint and --agent-url", "installation", "rebuild")
	c.refuses("give one of --folder, --s3-endpoint and --agent-url", rebuild("--agent-url=https://agent:1")...)
	c.refuses("agent-secret-file", "installation", "rebuild", "--agent-url=https://agent:1")
	other := console{t: t, url: c.url, keyring: newConsole(t).keyring}
	other.refuses("the key ring is another one than it was encrypted with", rebuild()...)
	none := console{t: t, url: c.url, keyring: filepath.Join(t.TempDir(), "lost")}
	none.refuses("no such file", rebuild()...)
	for what, wrong := range map[string]struct {
		text []byte
		want string
	}{
		"a flipped bit":        {flipped(text), "it is damaged, or not whole"},
		"cut off":              {text[:len(text)/2], "it is damaged, or not whole"},
		"nothing":              {nil, "it is no snapshot of metadata"},
		"a newer format":       {bytes.Replace(text, []byte(`"format":1`), []byte(`"format":9`), 1), "it was taken by a newer program"},
		"another name's":       {s.taken(snapshot.NameAt(time.Unix(0, 0))), "it is another snapshot than its place says"},
		"another installation": {bytes.ReplaceAll(text, []byte(s.installation[:8]), []byte("00000000")), "it is another snapshot"},
	} {
		s.put(s.newest, wrong.text)
		t.Log(what)
		c.refuses(wrong.want, rebuild(this)...)
	}
	s.put(s.newest, flipped(text))
	of := s.installation
	s.installation = "00000000-0000-4000-8000-000000000000"
	s.put(s.newest, text)
	c.refuses("name one with --installation", rebuild()...)
	out, err := c.run(rebuild("--installation=" + string(of))...)
	if err != nil || !strings.Contains(out, "trying the one before") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func flipped(text []byte) []byte {
	changed := bytes.Clone(text)
	changed[len(text)/2] ^= 1
	return changed
}
