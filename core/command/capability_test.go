package command_test

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// later is a command of today with a field that was added later.
type later struct {
	command.SetAccess
	Reason string `json:"reason,omitempty" agent:"later"`
}

// newKind is a kind that was added later, with two steps.
type newKind struct{ Want string }

func (c newKind) About() command.About { return command.About{Kind: "database.move", Step: c.Want} }
func (newKind) Steps() []string        { return []string{"copy", "switch"} }
func (newKind) Check() error           { return nil }

// newStep is a step that was added later to a kind of today.
type newStep struct{ command.ChangeLogin }

func (newStep) About() command.About { return command.About{Kind: "login.ensure", Step: "freeze"} }
func (newStep) Steps() []string      { return []string{"freeze"} }

func TestWhatACommandNeedsOfAnAgent(t *testing.T) {
	for _, c := range []struct {
		command       command.Command
		needs, offers []string
	}{
		{command.ChangeLogin{Want: role.Rotation}, nil, nil},
		{later{}, nil, []string{"database.access.reason"}},
		{later{Reason: "x"}, []string{"database.access.reason"}, []string{"database.access.reason"}},
		{
			newKind{"copy"}, []string{"database.move", "database.move/copy"},
			[]string{"database.move", "database.move/copy", "database.move/switch"},
		},
		{newStep{}, []string{"login.ensure/freeze"}, []string{"login.ensure/freeze"}},
	} {
		if needs, offers := command.Needs(c.command), command.Offers(c.command); !slices.Equal(needs, c.needs) ||
			!slices.Equal(offers, c.offers) {
			t.Errorf("%T needs %v and offers %v", c.command, needs, offers)
		}
	}
}

// An agent of this version lacks nothing, and one that names nothing lacks every word that a command of this version needs.
func TestMissing(t *testing.T) {
	lacks := command.Missing(nil)
	if got := command.Missing(lacks); len(got) != 0 || len(lacks) == 0 {
		t.Errorf("%q of %q", got, lacks)
	}
	for _, c := range all {
		for _, word := range command.Needs(c.command) {
			if !slices.Contains(lacks, word) {
				t.Errorf("%s is not known to be sent", word)
			}
		}
	}
}
