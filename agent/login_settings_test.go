package agent_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
)

// A login may have its own sessions fail at their beginning. Its password changes all the same: a change that never ends would
// keep everybody else's from beginning.
func TestLoginThatSpoilsItsSessionsRotates(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	for library, l := range map[string]loginOf{
		"nothing":      s.opened(t, w.additional(1, protocol.ProfileReadOnly)),
		"../elsewhere": s.opened(t, w.additional(2, protocol.ProfileCustom)),
		"neither":      w.present(database.OwnerLogin),
	} {
		must(s.direct(t, w.name, l.username, l.password).Exec(
			fmt.Sprintf("ALTER ROLE %q SET local_preload_libraries = '%s'", l.username, library)))(t)
		for range 3 { // with and without a failure that PgBouncer remembers
			next := l.renewed()
			proof := as[protocol.LoginProof](t, s.done(t, l.rotate(s.nextGeneration(), next)))
			if !proof.NoneLeft || !proof.OldRefused || !proof.NewAccepted || proof.ConnectMissing {
				t.Errorf("%s, %s: %+v", l.username, library, proof)
			}
			s.getsInNowhere(t, "the old password", l)
			l = next
		}
		s.wantCondition(t, l, protocol.ConditionInForce)
	}
}

// A login may have its transactions wait until nobody writes in a serializable one, and somebody in another database do that for
// as long as they like.
func TestLoginThatWaitsForASafeSnapshotRotates(t *testing.T) {
	s := realStack(t)
	w, elsewhere := s.made(t, database.Managed), s.made(t, database.Managed)
	accomplice := must(s.owner(t, elsewhere).BeginTx(t.Context(), nil))(t)
	must(accomplice.Exec("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; CREATE TABLE written (); TABLE written"))(t)
	defer func() { _ = accomplice.Rollback() }()
	l := s.opened(t, w.additional(1, protocol.ProfileReadOnly))
	must(s.direct(t, w.name, l.username, l.password).Exec(`
		ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable';
		ALTER ROLE CURRENT_USER SET default_transaction_read_only = on;
		ALTER ROLE CURRENT_USER SET default_transaction_deferrable = on`))(t)
	for range 2 { // with and without such a setting in the pool
		next := l.renewed()
		proof := as[protocol.LoginProof](t, s.done(t, l.rotate(s.nextGeneration(), next)))
		if !proof.NoneLeft || !proof.OldRefused || !proof.NewAccepted || proof.ConnectMissing {
			t.Errorf("%+v", proof)
		}
		l = next
	}
	s.done(t, l.shut(protocol.LoginRevoke, s.nextGeneration()))
}
