package logins_test

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// atMessage is an edit that changes nothing, and calls do at the first message that has the words.
func atMessage(words string, do func()) func([]byte) []byte {
	var once sync.Once
	return func(text []byte) []byte {
		if bytes.Contains(text, []byte(words)) {
			once.Do(do)
		}
		return text
	}
}

// Who stood in the middle of a direct log-in gets in after the change was proven, sets a password of its own, and leaves or
// stays. The command does not say that it is done; sent again, it goes over all of it.
func TestPasswordSetByALateSessionIsFound(t *testing.T) {
	agenttest.OverModelsWhole(t, testPasswordSetByALateSessionIsFound)
}

func testPasswordSetByALateSessionIsFound(t *testing.T, m database.RoleModel) {
	s := survivalStack(t)
	for what, stays := range map[string]bool{"leaves": false, "stays": true} {
		t.Run(what, func(t *testing.T) {
			var intrude func()
			// The last statement but one of the flow: it ends the sessions of before.
			port := relayed(t, s, atMessage("a.backend_start < (", func() { intrude() }))
			x := inProcess(t, s, port, asItIs)
			l := openedAs(t, s, m, x)
			release := make(chan struct{})
			parked := parkedDirectly(t, s.PG.URLFor(l.Username, l.Password, l.Name), release)
			mine, next := l.Renewed(), l.Renewed()
			intrude = func() {
				close(release)
				conn := <-parked
				if conn == nil {
					t.Error("PostgreSQL did not let it in: the test shows nothing")
					return
				}
				set := "ALTER ROLE CURRENT_USER PASSWORD '" + mine.Verifier + "'"
				if _, err := conn.(driver.ExecerContext).ExecContext(context.Background(), set, nil); err != nil {
					t.Error(err)
				}
				if !stays {
					_ = conn.Close()
				}
			}
			rotation := l.Rotate(2, next)
			_, err := x.Execute(t.Context(), rotation)
			var no *command.Refusal
			if !errors.As(err, &no) || no.Reason != command.ReasonUnavailable {
				t.Errorf("%v, want that it is unavailable", err)
			}
			check.Must(x.Execute(t.Context(), rotation))(t)
			s.GetsInNowhere(t, "a password of its own", mine)
			s.GetsInNowhere(t, "the old password", l)
			s.GetsIn(t, "the new password", next)
		})
	}
}
