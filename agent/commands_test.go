package agent_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// wanted is a database that a test wants made.
type wanted struct {
	id, operation string
	name          string
	model         database.RoleModel
	cap           int
	passwords     map[database.Login]string
	verifiers     map[database.Login]string
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return string(id.FromBytes[id.OperationID](b))
}

// want is a managed database with a name that no other test uses.
func want(model database.RoleModel) wanted {
	w := wanted{
		id: newUUID(), operation: newUUID(), name: "db-" + strings.ToLower(rand.Text()[:10]), model: model, cap: 10,
		passwords: map[database.Login]string{}, verifiers: map[database.Login]string{},
	}
	for _, l := range model.Logins() {
		var salt [16]byte
		_, _ = rand.Read(salt[:])
		w.passwords[l] = rand.Text()
		w.verifiers[l] = credential.Verifier(w.passwords[l], salt, credential.Iterations)
	}
	return w
}

func (w wanted) names() database.Names { return database.RoleNames(w.databaseID(), w.name) }

func (w wanted) login(l database.Login) (name, password string) {
	return w.names().Of(l), w.passwords[l]
}

func (w wanted) create() protocol.Command {
	c := command.EnsureDatabase{DatabaseID: w.databaseID(), Name: w.name, RoleModel: w.model, ConnectionCap: w.cap}
	for _, l := range w.model.Logins() {
		c.Logins = append(c.Logins, command.Login{
			Login: l, Username: w.names().Of(l), Verifier: w.verifiers[l], Password: w.passwords[l],
		})
	}
	return told(w.operation, 1, c)
}

func (w wanted) databaseID() id.DatabaseID { return id.DatabaseID(w.id) }

func databaseResource(id string) string { return "database/" + id }

func (w wanted) access(generation int64, open, disconnect bool) protocol.Command {
	return told(newUUID(), 1, command.SetAccess{
		DatabaseID: w.databaseID(), Generation: generation, Open: open, Disconnect: disconnect,
	})
}

func (w wanted) allowlist(generation int64, networks ...string) protocol.Command {
	c := told("", 0, command.SetAllowlist{DatabaseID: w.databaseID(), Generation: generation})
	list, err := json.Marshal(append([]string{}, networks...)) // also what is no network
	if err != nil {
		panic(err)
	}
	c.Payload = bytes.Replace(c.Payload, []byte("[]"), list, 1)
	c.PayloadHash = protocol.Hash(c.Payload)
	return c
}

func (w wanted) backup(operation, filename string, verify bool) protocol.Command {
	return told(operation, 1, command.Backup{DatabaseID: w.databaseID(), Filename: backup.Filename(filename), Verify: verify})
}

func closing(operation string) protocol.Command {
	return told(operation, 1, command.Close{OperationID: id.OperationID(operation)})
}

// told is a command as a control plane sends it.
func told(operation string, epoch int64, c command.Command) protocol.Command {
	payload, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return protocol.Command{
		Kind: c.About().Kind, OperationID: operation, Epoch: epoch, Step: command.Step(c), Resource: c.About().Resource,
		Generation: c.About().Generation, PayloadHash: protocol.Hash(payload), Payload: payload, Secrets: command.Secrets(c),
	}
}

// request sends a request with the shared secret; an error is an unknown outcome.
func (s *stack) request(method, path string, body []byte) (int, []byte, error) {
	r, err := http.NewRequest(method, "https://"+s.config.Listen+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set(protocol.Header, strconv.Itoa(command.Protocol))
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// send sends a command and returns its result, or the reason why not.
func (s *stack) send(c protocol.Command) (result json.RawMessage, reason string, err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, "", err
	}
	status, text, err := s.request(http.MethodPost, "/v1/commands", body)
	if err != nil {
		return nil, "", err
	}
	if status == http.StatusOK {
		var reply protocol.Reply
		return reply.Result, "", json.Unmarshal(text, &reply)
	}
	var no command.Refusal
	if err := json.Unmarshal(text, &no); err != nil {
		return nil, "", fmt.Errorf("status %d: %w", status, err)
	}
	return nil, string(no.Reason) + ": " + no.Message, nil
}

// done sends a command that must be done.
func (s *stack) done(t testing.TB, c protocol.Command) json.RawMessage {
	t.Helper()
	result, reason, err := s.send(c)
	if err != nil || reason != "" {
		t.Fatalf("%s: %s %v", c.Kind, reason, err)
	}
	return result
}

// doneInTheEnd sends a command again for as long as it is unavailable: an opt-in gives others of the agent their turns, and
// after a crash PgBouncer may not get into PostgreSQL at once.
func (s *stack) doneInTheEnd(t testing.TB, c protocol.Command) {
	t.Helper()
	for began := time.Now(); ; {
		_, reason, err := s.send(c)
		switch {
		case err == nil && reason == "":
			return
		case err != nil || !isForLater(reason) || time.Since(began) > 2*time.Minute:
			t.Fatalf("%s: %s %v", c.Kind, reason, err)
		}
	}
}

// isForLater reports whether a command that was refused with these words is to be sent again.
func isForLater(reason string) bool {
	return strings.HasPrefix(reason, string(command.ReasonUnavailable)) ||
		strings.HasPrefix(reason, string(command.ReasonUnfinished))
}

// refusedFor sends a command that must be refused for a reason.
func (s *stack) refusedFor(t testing.TB, reason command.Reason, c protocol.Command) {
	t.Helper()
	_, got, err := s.send(c)
	if err != nil || !strings.HasPrefix(got, string(reason)+":") {
		t.Errorf("%s: got %q (%v), want a refusal for %q", c.Kind, got, err, reason)
	}
}

func compact(uuid string) string { return id.Compact(id.OperationID(uuid)) }
