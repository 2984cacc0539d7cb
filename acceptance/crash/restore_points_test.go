package crash_test

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
)

func succeeds(of *restorable) func() flow {
	return func() flow { return &restoreFlow{restorable: of, end: operation.Succeeded} }
}

// succeedingRestores are driven by a caller's advances, or by the batch host alone.
func succeedingRestores(managed, plain *restorable) (cases []killing) {
	for _, of := range []*restorable{managed, plain} {
		cases = append(cases, kill(inAPI, "restore "+string(of.model), succeeds(of)(), work.Reserved(restores.Kind)))
	}
	commits := []string{"ready", "switching", "settling", "succeeded"}
	for _, p := range around(restores.Kind, "load", "switch", "settings", "discard") {
		cases = append(cases, kill(inAPI, "restore managed", succeeds(managed)(), p))
		cases = append(cases, kill(inBatch, "restore plain", succeeds(plain)(), p))
	}
	cases = append(cases, aroundCommits(inAPI, restores.Kind, "restore managed", succeeds(managed), commits...)...)
	return append(cases, aroundCommits(inBatch, restores.Kind, "restore plain", succeeds(plain), commits...)...)
}

// restoringMoments are of what the database held at a moment, driven by a caller.
func restoringMoments() (cases []killing) {
	then := &restorable{model: database.Managed, then: true}
	for _, p := range around(restores.Kind, "dump", "load") {
		cases = append(cases, kill(inAPI, "restore a moment", succeeds(then)(), p))
	}
	cases = append(cases, aroundCommits(inAPI, restores.Kind, "restore a moment", succeeds(then), "loading")...)
	for _, p := range archive.CrashPoints {
		if p != "archive.copied" { // the agent's tests do: it is seldom
			cases = append(cases, kill(inAgent, "restore a moment", succeeds(then)(), "agent."+p))
		}
	}
	return cases
}

// leftRestores are managed ones whose caller goes away.
func leftRestores(managed *restorable) (cases []killing) {
	left := func(end operation.Status) func() flow {
		return func() flow { return &leftFlow{restoreFlow{restorable: managed, end: end}} }
	}
	canceled, done := left(operation.Canceled), left(operation.Succeeded)
	for _, p := range around(restores.Kind, "close") {
		cases = append(cases, kill(inBatch, "caller leaves early", canceled(), p))
	}
	for _, p := range around(restores.Kind, "switch", "settings", "discard") {
		cases = append(cases, kill(inBatch, "caller leaves late", done(), p))
	}
	cases = append(cases, aroundCommits(inBatch, restores.Kind, "caller leaves early", canceled, "canceling", "canceled")...)
	return append(cases, aroundCommits(inBatch, restores.Kind, "caller leaves late", done, "settling", "succeeded")...)
}

// canceledRestores are canceled while their copy is made.
func canceledRestores(in part, managed *restorable) (cases []killing) {
	canceled := func() flow { return &restoreFlow{restorable: managed, end: operation.Canceled} }
	points := []string{crash.CloseRecorded, crash.CloseEmptied, crash.CloseReply}
	if in == inBatch {
		cases = aroundCommits(in, restores.Kind, "cancel", canceled, "canceling", "canceled")
		points = around(restores.Kind, "close")
	}
	for _, p := range points {
		cases = append(cases, kill(in, "cancel", canceled(), p))
	}
	return cases
}

// failingRestores have no copy, or one that the agent does not switch to.
func failingRestores(managed, plain *restorable) (cases []killing) {
	for _, c := range []struct {
		in      part
		what    string
		of      *restorable
		refused bool
	}{
		{inBatch, "restore without a copy", &restorable{model: database.SingleLogin, more: uncopyable}, false},
		{inAPI, "managed restore without a copy", &restorable{model: database.Managed, more: uncopyable}, false},
		{inBatch, "restore that is not switched", plain, true},
		{inAPI, "managed restore that is not switched", managed, true},
	} {
		failed := func() flow { return &restoreFlow{restorable: c.of, end: operation.Failed, refused: c.refused} }
		for _, p := range around(restores.Kind, "close") {
			cases = append(cases, kill(c.in, c.what, failed(), p))
		}
		cases = append(cases, aroundCommits(c.in, restores.Kind, c.what, failed, "failing", "failed")...)
	}
	return cases
}

// restoresAtTheAgent have it die over them. A managed one is advanced before and after.
func restoresAtTheAgent(managed, plain *restorable) (cases []killing) {
	points := slices.DeleteFunc(slices.Clone(crash.Points), func(p string) bool {
		return !strings.HasPrefix(p, "agent.restore.") || p == crash.SwitchUndone
	})
	for _, p := range copies.CrashPoints {
		points = append(points, "agent."+p)
	}
	for _, p := range points {
		for _, of := range []*restorable{managed, plain} {
			cases = append(cases, kill(inAgent, "restore "+string(of.model), succeeds(of)(), p))
		}
	}
	for _, p := range []string{crash.SwitchGateClosed, crash.SwitchRenamed, crash.SwitchReconnected} {
		stopped := &restoreFlow{restorable: managed, end: operation.Succeeded, stopped: true}
		cases = append(cases, kill(inAgent, "restore of a stopped database", stopped, p))
	}
	refused := &restoreFlow{restorable: managed, end: operation.Failed, refused: true}
	return append(cases, kill(inAgent, "restore that is not switched", refused, crash.SwitchUndone),
		kill(inAgent, "restore managed", succeeds(managed)(), crash.SwitchAlone, crash.SwitchRenamed))
}

// restoresAtTheServer have PostgreSQL crash while the agent stands still.
func restoresAtTheServer(plain *restorable) (cases []killing) {
	for _, p := range []string{
		"agent.restore.compared", "agent.restore.ready", crash.SwitchGateClosed, crash.SwitchAlone, crash.SwitchRenamed,
		crash.SwitchOpened, crash.DiscardReply,
	} {
		cases = append(cases, kill(inServer, "PostgreSQL crashes", succeeds(plain)(), p))
	}
	return cases
}

// restoring are the cases of restores that hosts die over. Those that leave a database good share it.
func restoring() []killing {
	managed, plain := &restorable{model: database.Managed}, &restorable{model: database.SingleLogin}
	return slices.Concat(succeedingRestores(managed, plain), leftRestores(managed), canceledRestores(inBatch, managed),
		failingRestores(managed, plain))
}

// restoringThere are those in which something dies on the database server.
func restoringThere() []killing {
	managed, plain := &restorable{model: database.Managed}, &restorable{model: database.SingleLogin}
	return slices.Concat(restoresAtTheAgent(managed, plain), canceledRestores(inAgent, managed), restoresAtTheServer(plain))
}
