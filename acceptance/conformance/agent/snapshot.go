package agent

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/ports"
)

var snapshotCases = map[string]func(t *testing.T, s Stand){
	"snapshots are kept":                    snapshotsKept,
	"snapshot that breaks off":              snapshotBroken,
	"snapshot of a name that is none":       snapshotOfNoName,
	"snapshots are superseded of their own": snapshotsSuperseded,
}

// keptAt keeps a text as the snapshot of a minute.
func keptAt(t *testing.T, s Stand, of id.InstallationID, minute int, text string) (snapshot.Name, error) {
	t.Helper()
	name := snapshot.NameAt(time.Date(2026, time.January, 31, 9, minute, 0, 0, time.UTC))
	_, err := ports.Send(bounded(t), s.Agent, command.KeepSnapshot{InstallationID: of, Name: name}, int64(len(text)),
		strings.NewReader(text))
	return name, err
}

func keptOf(t *testing.T, s Stand, of id.InstallationID) (list []command.Snapshot) {
	t.Helper()
	for _, one := range must(ports.Ask(bounded(t), s.Agent, command.AskSnapshots{}))(t).Snapshots {
		if one.InstallationID == of {
			list = append(list, one)
		}
	}
	return list
}

func snapshotsKept(t *testing.T, s Stand) {
	of, text := newID[id.InstallationID](), strings.Repeat("metadata ", 300_000) // more than a MiB
	name, err := keptAt(t, s, of, 1, text)
	noError(t, err)
	if _, err := keptAt(t, s, of, 1, "another"); !command.RefusedFor(err, command.ReasonConflict) {
		t.Errorf("the same name again: %v", err)
	}
	if list := keptOf(t, s, of); !slices.Equal(list, []command.Snapshot{{InstallationID: of, Name: name, Bytes: int64(len(text))}}) {
		t.Errorf("kept: %v", list)
	}
	if newest := must(ports.Ask(bounded(t), s.Agent, command.AskSnapshots{}))(t).Newest(of); newest != name {
		t.Errorf("the newest: %q", newest)
	}
	file := must(s.Agent.Open(bounded(t), command.OpenSnapshot{InstallationID: of, Name: name}))(t)
	defer file.Body.Close()
	if got := must(io.ReadAll(file.Body))(t); string(got) != text || file.Size != int64(len(text)) {
		t.Errorf("%d bytes come back of %d", len(got), len(text))
	}
	for _, f := range filesBelow(t, s, "") {
		if strings.Contains(f.Path, string(of)) {
			t.Errorf("%s is listed with the files of backups", f.Path)
		}
	}
}

func snapshotBroken(t *testing.T, s Stand) {
	of, broken := newID[id.InstallationID](), errors.New("the host is gone")
	q := command.KeepSnapshot{InstallationID: of, Name: snapshot.NameAt(time.Unix(0, 0))}
	body := io.MultiReader(bytes.NewReader([]byte("half")), iotest.ErrReader(broken))
	if _, err := ports.Send(bounded(t), s.Agent, q, 8, body); !errors.Is(err, broken) {
		t.Errorf("it broke off: %v", err)
	}
	if _, err := ports.Send(bounded(t), s.Agent, q, 8, strings.NewReader("half")); err == nil {
		t.Error("half of what was announced is taken")
	}
	if list := keptOf(t, s, of); len(list) > 0 {
		t.Errorf("kept: %v", list)
	}
	_, err := s.Agent.Open(bounded(t), command.OpenSnapshot{InstallationID: of, Name: q.Name})
	if !command.RefusedFor(err, command.ReasonNotFound) {
		t.Errorf("opened: %v", err)
	}
}

func snapshotOfNoName(t *testing.T, s Stand) {
	of := newID[id.InstallationID]()
	for _, q := range []command.KeepSnapshot{
		{InstallationID: of, Name: "20260131"}, {InstallationID: of, Name: "../x"},
		{InstallationID: "x", Name: snapshot.NameAt(time.Unix(0, 0))},
	} {
		_, err := ports.Send(bounded(t), s.Agent, q, 1, strings.NewReader("x"))
		if !command.RefusedFor(err, command.ReasonInvalid) {
			t.Errorf("%+v is kept: %v", q, err)
		}
		_, err = s.Agent.Open(bounded(t), command.OpenSnapshot{InstallationID: q.InstallationID, Name: q.Name})
		if err == nil {
			t.Errorf("%+v is opened", q)
		}
	}
}

func snapshotsSuperseded(t *testing.T, s Stand) {
	of, another := newID[id.InstallationID](), newID[id.InstallationID]()
	_, err := keptAt(t, s, another, 0, "of another")
	noError(t, err)
	var last snapshot.Name
	for minute := range 5 {
		last, err = keptAt(t, s, of, minute, "x")
		noError(t, err)
	}
	if list := keptOf(t, s, of); len(list) != 3 || list[2].Name != last {
		t.Errorf("kept: %v", list)
	}
	if list := keptOf(t, s, another); len(list) != 1 {
		t.Errorf("kept of another installation: %v", list)
	}
}
