package stage_test

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rebuild"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
)

// machines are all of them, each with the stages from which only the agent's word leads back.
var machines = map[string]struct {
	stage.Machine
	forward []stage.Stage
}{
	"adoption":  {adoption.Machine, []stage.Stage{adoption.Taking}},
	"backup":    {backup.Machine, nil},
	"look":      {recovery.Machine, nil},
	"extension": {extension.Machine, nil},
	"clone":     {clone.Machine, []stage.Stage{clone.Switching, clone.Settling}},
	"move":      {move.Machine, []stage.Stage{move.Parting, move.Serving, move.Departing, move.Settling, move.Leaving}},
	"rehearsal": {rehearsal.Machine, nil},
	"rebuild":   {rebuild.Machine, []stage.Stage{rebuild.Switching, rebuild.Opening, rebuild.Settling}},
	"restore":   {restore.Machine, []stage.Stage{restore.Switching, restore.Settling}},
	"deletion":  {deletion.Machine, []stage.Stage{deletion.Isolating}},
	"recovery":  {deletion.Recovery, []stage.Stage{deletion.Rejoining}},
	"purge":     {deletion.Purge, []stage.Stage{deletion.Removing}},
}

func TestMachines(t *testing.T) {
	for name, m := range machines {
		t.Run(name, func(t *testing.T) {
			machinetest.Complete(t, m.Table, m.Stages, m.Events)
			for _, s := range m.Stages {
				if !slices.ContainsFunc(after(m.Machine, s), final) {
					t.Errorf("%s never ends", s)
				}
				o := operation.Operation{Status: operation.Running, Stage: string(s)}
				late := s == stage.Failing && name != "extension" || slices.Contains(m.forward, s) || name == "purge" ||
					name == "rebuild" && s != stage.Queued
				if got := m.Cancelable(o); got == late && !final(s) {
					t.Errorf("%s can be canceled: %t", s, got)
				}
			}
			for _, s := range m.forward {
				for e, cell := range m.Table[s] {
					if cell.Next == stage.Canceled || cell.Next == stage.Canceling || cell.Next == stage.Failed {
						t.Errorf("%s/%s leads back to %s", s, e, cell.Next)
					}
				}
			}
		})
	}
}

func final(s stage.Stage) bool { return operation.Status(s).Final() }

// after are the stages to which a stage can lead, itself included.
func after(m stage.Machine, s stage.Stage) []stage.Stage {
	found := []stage.Stage{s}
	for i := 0; i < len(found); i++ {
		for _, cell := range m.Table[found[i]] {
			if cell.Code == "" && !slices.Contains(found, cell.Next) {
				found = append(found, cell.Next)
			}
		}
	}
	return found
}

// What an operation shows is a stage, or stands for the one in which an agent reports what it is at.
func TestStagesOfOperations(t *testing.T) {
	for _, c := range []struct {
		status operation.Status
		shown  string
		want   stage.Stage
	}{
		{operation.Queued, "queued", stage.Queued},
		{operation.Running, "queued", stage.Queued},
		{operation.Running, "comparing", restore.Loading},
		{operation.Running, "ready", restore.Ready},
		{operation.Running, "failing", stage.Failing},
		{operation.Succeeded, "finished", stage.Succeeded},
		{operation.Failed, "finished", stage.Failed},
		{operation.Canceled, "finished", stage.Canceled},
	} {
		if got := restore.Machine.Of(operation.Operation{Status: c.status, Stage: c.shown}); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.status, c.shown, got, c.want)
		}
	}
}

func TestWordsInPlaceOfAStage(t *testing.T) {
	for shown, want := range map[string]stage.Stage{
		"fetching": clone.Dumping, "replaying": clone.Dumping, "dumping": clone.Dumping, "comparing": clone.Loading,
	} {
		if got := clone.Machine.Of(operation.Operation{Status: operation.Running, Stage: shown}); got != want {
			t.Errorf("%s: %s, want %s", shown, got, want)
		}
	}
}

func TestWhatMovesLeaveOut(t *testing.T) {
	const working, leap = stage.Stage("working"), stage.Event("leap")
	m := stage.New([]stage.Stage{stage.Queued, working, stage.Canceling, stage.Canceled},
		[]stage.Event{stage.Advance, stage.Cancel, leap}, working, stage.Moves{})
	for _, c := range []struct {
		at   stage.Stage
		on   stage.Event
		code fault.Code // empty: it stays
	}{
		{working, stage.Advance, ""}, {stage.Canceling, stage.Cancel, ""}, {stage.Canceled, stage.Cancel, ""},
		{working, stage.Cancel, fault.DatabaseStateConflict}, {stage.Queued, stage.Advance, fault.InternalError},
		{stage.Canceled, stage.Advance, fault.InternalError}, {working, leap, fault.InternalError},
	} {
		cell, err := m.Decide(c.at, c.on)
		if stays := cell.Next == c.at; stays != (c.code == "") || !stays && !fault.Has(err, c.code) {
			t.Errorf("%s/%s: %+v, %v", c.at, c.on, cell, err)
		}
	}
}
