package ledger

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/ledgertest"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

// A kind of jobs hears every command, and that the result is stored, after which there are no more.
func TestAJobIsOverOnceItsResultIsStored(t *testing.T) {
	db := ledgertest.New(t)
	l := &Ledger{
		db: db, log: zap.NewNop(), Jobs: jobs.New(db, zap.NewNop()), completes: map[command.Kind]func([]byte) (bool, error){},
		kinds: map[kindStep]handler{}, traits: map[command.Kind][]Trait{},
	}
	var heard []string
	hears := func(what string) func(id.OperationID, command.QualifyExtension) {
		return func(id.OperationID, command.QualifyExtension) { heard = append(heard, what) }
	}
	release := make(chan struct{})
	OnJob(l, jobs.Kind[command.QualifyExtension, command.ExtensionProof]{
		Told: hears("told"), Over: hears("over"), Made: func(command.ExtensionProof) bool { return true },
		Running: func(string, int, command.Bytes) (r command.ExtensionProof) { return r },
		Run: func(context.Context, jobs.Job, command.QualifyExtension, jobs.Tell) (r command.ExtensionProof, err error) {
			<-release
			return r, nil
		},
	})
	c := command.QualifyExtension{Extension: extension.Citext, Version: "1.6"}
	kind := c.About().Kind
	e := protocol.Command{
		OperationID: "44444444-4444-4444-8444-444444444444", Epoch: 1, Step: string(kind), Kind: kind, Resource: c.About().Resource,
		Generation: 1, Payload: check.Must(json.Marshal(c))(t),
	}
	const admitted = "SELECT ledger.admit($1, 1, false, $2, $3, 1, $4, 'hash')"
	ledgertest.Exec(t, db, admitted, e.OperationID, e.Step, e.Resource, string(kind))
	do := check.Must(l.kinds[kindStep{kind, ""}](e))(t)
	check.Must(do(t.Context()))(t)
	close(release)
	check.Must(do(t.Context()))(t)
	if want := []string{"told", "told", "over"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, not %q", heard, want)
	}
}
