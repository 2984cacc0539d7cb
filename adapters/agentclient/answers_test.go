package agentclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

func TestABrokenConnectionIsUnknownAndNothingIsSentAgain(t *testing.T) {
	eachCall(t, hangUp, func(t *testing.T, w *wire, err error) {
		wantUnknown(t, err)
		wantRequests(t, w, 1)
	})
}

// A kept connection that breaks under a command is the case that net/http repeats by itself for requests that it may.
func TestAKeptConnectionThatBreaksUnderACommandIsUnknown(t *testing.T) {
	for _, name := range []string{"EnsureDatabase", "SetAccess", "SetAllowlist", "Backup", "Close", "DeleteBackup"} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					answer(200, `{"bytes":1}`)(rw, r)
					return
				}
				hangUp(rw, r)
			})
			a := agentOf(t, w.server(t))
			check.NoError(t, calls["DatabaseSize"](brief(t), a))
			wantUnknown(t, calls[name](brief(t), a))
			wantRequests(t, w, 2)
			if n := w.conns.Load(); n != 1 {
				t.Errorf("%d connections: the kept one was not used", n)
			}
		})
	}
}

func TestALateAnswerIsUnknown(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				panic(http.ErrAbortHandler) // no answer, not even to a client that is just leaving
			})
			a := agentOf(t, w.server(t))
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			wantUnknown(t, call(ctx, a))
			wantRequests(t, w, 1)
		})
	}
}

func TestAWrongSecretIsUnknown(t *testing.T) {
	eachCall(t, answer(http.StatusUnauthorized, ""), func(t *testing.T, _ *wire, err error) { wantUnknown(t, err) })
}

func TestEveryReasonIsARefusal(t *testing.T) {
	for _, reason := range command.Reasons {
		for name, call := range calls {
			t.Run(string(reason)+" to "+name, func(t *testing.T) {
				err := call(brief(t), agentOf(t, newWire(t, refuse(http.StatusConflict, reason)).server(t)))
				wantRefusal(t, err, reason)
				if !strings.HasSuffix(err.Error(), "because") {
					t.Errorf("the message is lost: %v", err)
				}
			})
		}
	}
}

// An agent names no generations where it has admitted none.
func TestTheGenerationsOfARefusal(t *testing.T) {
	for body, want := range map[string]*command.Generations{
		`{"reason":"stale","message":""}`: nil,
		`{"reason":"stale","message":"","generations":{"applied":2,"admitted":5,"credential":7}}`: {
			Applied: 2, Admitted: 5, Credential: 7,
		},
	} {
		err := calls["SetAllowlist"](brief(t), agentOf(t, newWire(t, answer(http.StatusConflict, body)).server(t)))
		wantRefusal(t, err, command.ReasonStale)
		var no *command.Refusal
		if errors.As(err, &no) && !reflect.DeepEqual(no.Generations, want) {
			t.Errorf("%s: %+v", body, no.Generations)
		}
	}
}

func TestAnswersThatAreNoRefusal(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"an unknown reason":       refuse(http.StatusConflict, "not_yet_invented"),
		"no reason":               answer(http.StatusBadGateway, `{"message":"gone"}`),
		"a proxy's page":          answer(http.StatusBadGateway, "<html>bad gateway</html>"),
		"nothing":                 answer(http.StatusInternalServerError, ""),
		"a refusal in a redirect": refuse(http.StatusFound, command.ReasonStale),
		"an endless refusal":      endless(http.StatusConflict, `{"reason":"stale","message":"`),
		"an odd success":          answer(http.StatusAccepted, "{}"),
	} {
		t.Run(name, func(t *testing.T) {
			eachCall(t, handler, func(t *testing.T, _ *wire, err error) { wantUnknown(t, err) })
		})
	}
}

func TestSuccessesThatAreNoAnswer(t *testing.T) {
	withContent := []string{
		"EnsureDatabase", "SetAccess", "SetAllowlist", "ChangeLogin", "DatabaseSize", "InspectLogin", "ReadOutcome", "Backup", "Close",
	}
	for name, handler := range map[string]http.HandlerFunc{
		"no JSON":         answer(200, "hello"),
		"cut off":         answer(200, `{"result":`),
		"nothing":         answer(200, ""),
		"endless":         endless(200, `{"result":"`),
		"another type":    answer(200, `{"result":5,"bytes":"x","condition":"y"`),
		"no content":      answer(204, ""),
		"an endless head": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 128<<10)) },
	} {
		t.Run(name, func(t *testing.T) {
			eachCall(t, handler, func(t *testing.T, _ *wire, err error) {
				if slices.ContainsFunc(withContent, func(n string) bool { return strings.HasSuffix(t.Name(), "/"+n) }) {
					wantUnknown(t, err)
				}
			})
		})
	}
}

func TestAnUnknownBackupStateIsAnUnknownOutcome(t *testing.T) {
	w := newWire(t, answer(200, `{"result":{"state":"not_yet_invented"}}`))
	wantUnknown(t, calls["Backup"](brief(t), agentOf(t, w.server(t))))
}

func TestAnUnknownConditionIsAnUnknownOutcome(t *testing.T) {
	w := newWire(t, answer(200, `{"condition":"not_yet_invented"}`))
	wantUnknown(t, calls["InspectLogin"](brief(t), agentOf(t, w.server(t))))
}

func TestARouteThatTheAgentDoesNotHave(t *testing.T) {
	questions := []string{
		"RoomForBackup", "DeleteBackup", "OpenBackup", "OpenRest", "OpenManifest", "SetAccounts", "InspectLogin", "ReadOutcome",
		"Chunk", "DatabaseSize",
	}
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			eachCall(t, answer(status, "404 page not found"), func(t *testing.T, _ *wire, err error) {
				if slices.ContainsFunc(questions, func(n string) bool { return strings.HasSuffix(t.Name(), "/"+n) }) {
					wantRefusal(t, err, command.ReasonNoRoute)
					return
				}
				wantUnknown(t, err)
			})
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		target := newWire(t, answer(200, "{}"))
		redirect := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", target.URL+r.URL.Path)
			w.WriteHeader(status)
		}
		eachCall(t, redirect, func(t *testing.T, _ *wire, err error) { wantUnknown(t, err) })
		wantRequests(t, target, 0)
	}
}

func TestPathsAreEscaped(t *testing.T) {
	var path string
	w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		rw.WriteHeader(http.StatusNoContent)
	})
	question := command.DeleteBackup{DatabaseID: "a/b", Filename: "../c?d#e"}
	check.NoError(t, asking(question)(brief(t), agentOf(t, w.server(t))))
	if want := "/v1/databases/a%2Fb/backups/..%2Fc%3Fd%23e"; path != want {
		t.Errorf("asked for %s, want %s", path, want)
	}
}

// endless answers until the client leaves.
func endless(status int, start string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, start)
		more := strings.Repeat("x", 64<<10)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, more); err != nil {
				return
			}
		}
	}
}
