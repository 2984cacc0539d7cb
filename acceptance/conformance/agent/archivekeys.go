package agent

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

// ArchiveKeys is the suite of an agent's key of its archive, for one that has none yet, or that keeps no archive.
func ArchiveKeys(t *testing.T, s Stand) {
	set := func(key string) error { return ask(bounded(t), s.Agent, command.SetArchiveKey{Key: key}) }
	own, other := strings.Repeat("k", command.ArchiveKeyLength), strings.Repeat("o", command.ArchiveKeyLength)
	has := must(ports.Ask(bounded(t), s.Agent, command.AskCapabilities{}))(t).Archive
	if has == nil {
		wantReason(t, set(own), command.ReasonInvalid)
		return
	}
	if has.KeyMark != "" {
		t.Errorf("at first it has a key: %+v", has)
	}
	wantReason(t, set(own[1:]), command.ReasonInvalid)
	noError(t, set(own))
	noError(t, set(own))
	if err := set(other); !command.RefusedFor(err, command.ReasonConflict) {
		t.Errorf("another key: %v", err)
	}
	has = must(ports.Ask(bounded(t), s.Agent, command.AskCapabilities{}))(t).Archive
	if has == nil || has.KeyMark != command.ArchiveKeyMark(own) {
		t.Errorf("it says %+v", has)
	}
}
