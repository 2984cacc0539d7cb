package logins_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// outcome asks what has become of a step of a role's set-up.
func outcome(s *agenttest.Stack, l agenttest.LoginOf, of protocol.Command) (found command.Outcome, err error) {
	question, _ := json.Marshal(command.ReadOutcome{ // has nothing that cannot be written
		DatabaseID: l.DatabaseID(), Username: l.Username, OperationID: id.OperationID(of.OperationID), Step: of.Step,
		AccessProfile: l.Profile, ConnectionLimit: l.Limit, Verifier: l.Verifier,
	})
	status, text, err := s.Request(http.MethodPost, "/v1/logins/outcome", question)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d: %s", status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	return found, err
}

// traitsOf are what a look shows of a role that is there.
func traitsOf(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) (altered, lacks string, open bool) {
	t.Helper()
	found, err := outcome(s, l, l.Open(1))
	check.NoError(t, err)
	if !found.Role.Present {
		t.Error("the role is not there")
	}
	return role.ListTraits(found.Role.Altered), role.ListTraits(found.Role.Lacks), found.Role.Open
}

// forgetsAdmission leaves a role as an agent does that dies when it has opened it: the ledger has no outcome.
func forgetsAdmission(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) {
	t.Helper()
	check.Must(s.Super.Exec("DELETE FROM ledger.command WHERE operation_id = $1 AND step = $2", l.Setup, l.Open(1).Step))(t)
}

// alterations are what an administrator can do to a role; %[1]s is the role, %[2]s the group of another profile, %[3]s its own.
var alterations = map[string]string{
	"ALTER ROLE %[1]s CREATEDB":                         "attributes",
	"ALTER ROLE %[1]s CREATEROLE":                       "attributes",
	"ALTER ROLE %[1]s SUPERUSER":                        "attributes",
	"ALTER ROLE %[1]s REPLICATION":                      "attributes",
	"ALTER ROLE %[1]s BYPASSRLS":                        "attributes",
	"ALTER ROLE %[1]s NOINHERIT":                        "attributes",
	"ALTER ROLE %[1]s CONNECTION LIMIT -1":              "connection limit",
	"ALTER ROLE %[1]s CONNECTION LIMIT 9":               "connection limit",
	"GRANT %[2]s TO %[1]s":                              "memberships",
	"GRANT pg_read_all_data TO %[1]s":                   "memberships",
	"GRANT %[3]s TO %[1]s WITH SET TRUE":                "memberships",
	"GRANT %[3]s TO %[1]s WITH ADMIN TRUE":              "memberships",
	"ALTER ROLE %[1]s CONNECTION LIMIT 8 NOREPLICATION": "",
}

// A role that an administrator has changed since it was prepared is refused, and shut where an earlier admission had opened it.
func TestOnlyARoleAsItWasMadeIsAdmitted(t *testing.T) {
	s, w := agenttest.ModelStack(t, database.SingleLogin)
	n := w.Names()
	ordinal := 0
	for statement, altered := range alterations {
		ordinal++
		for _, was := range []bool{false, true} {
			if was && strings.HasSuffix(statement, " SUPERUSER") {
				continue // the agent may change nothing of such a role
			}
			l := w.Additional(2*ordinal, role.ReadOnly)
			if was {
				l = s.Opened(t, w.Additional(2*ordinal+1, role.ReadOnly))
				forgetsAdmission(t, s, l)
			} else {
				s.Done(t, l.Prepare(1))
				s.Connect(t, l)
			}
			check.Must(s.Super.Exec(fmt.Sprintf(statement, l.Username, n.WriteGroup, n.ReadGroup)))(t)
			if got, _, open := traitsOf(t, s, l); got != altered || open != was {
				t.Errorf("%s: altered %q, open: %t", statement, got, open)
			}
			if altered == "" {
				s.Done(t, l.Open(1))
				s.GetsIn(t, statement, l)
				continue
			}
			s.RefusedFor(t, command.ReasonAltered, l.Open(1))
			if got, _, open := traitsOf(t, s, l); got != altered || open {
				t.Errorf("%s, refused: altered %q, open: %t", statement, got, open)
			}
			s.GetsInNowhere(t, statement, l)
			check.Must(s.Super.Exec("ALTER ROLE " + l.Username + " NOSUPERUSER"))(t) // or the agent may not end it
			soonRemoved(t, s, l, 2)
		}
	}
	s.NoOrphans(t)
}

// What an admission has opened that was not proven is shut where the next is refused, for whatever reason.
func TestAnAdmissionThatIsRefusedLeavesNothingOpen(t *testing.T) {
	agenttest.OverModels(t, testAnAdmissionThatIsRefusedLeavesNothingOpen)
}

func testAnAdmissionThatIsRefusedLeavesNothingOpen(t *testing.T, m database.RoleModel) {
	s, w := agenttest.ModelStack(t, m)
	l := s.Opened(t, w.Additional(1, role.ReadOnly))
	forgetsAdmission(t, s, l)
	s.Done(t, w.Access(2, false, true))
	if _, _, open := traitsOf(t, s, l); !open {
		t.Error("a role whose database is stopped is not to be let in again")
	}
	s.RefusedFor(t, command.ReasonDatabaseClosed, l.Open(1))
	if _, lacks, open := traitsOf(t, s, l); open || lacks != "log-in" {
		t.Errorf("it lacks %q, open: %t", lacks, open)
	}
	s.Done(t, w.Access(3, true, false))
	s.GetsInNowhere(t, "started", l)
	s.Done(t, l.Open(1))
	s.GetsIn(t, "admitted", l)
}

// A look at a step waits for a command that is at work on it: what it says is not done is not done a moment later.
func TestALookWaitsForTheStep(t *testing.T) {
	s, w := agenttest.ModelStack(t, database.SingleLogin)
	l := w.Additional(1, role.ReadOnly)
	s.Done(t, l.Prepare(1))
	s.Connect(t, l)
	tx := check.Must(s.Super.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("ALTER ROLE " + l.Username + " CONNECTION LIMIT 8"))(t) // as it is; it is in the way
	admitted := make(chan string, 1)
	go func() {
		_, reason, err := s.Send(l.Open(1))
		admitted <- fmt.Sprint(reason, err)
	}()
	const begun = "SELECT count(*) FROM ledger.command WHERE operation_id = $1 AND step = $2 AND result IS NULL"
	check.Eventually(t, "the admission does not begin", func() bool { return s.One(t, begun, l.Setup, l.Open(1).Step) == "1" })
	type answer struct {
		found command.Outcome
		err   error
	}
	looked := make(chan answer, 1)
	go func() {
		found, err := outcome(s, l, l.Open(1))
		looked <- answer{found, err}
	}()
	check.NoError(t, tx.Commit())
	if got := <-admitted; got != "<nil>" {
		t.Error(got)
	}
	if got := <-looked; got.err != nil || !got.found.Done || len(got.found.Role.Lacks) > 0 {
		t.Errorf("%+v", got)
	}
}
