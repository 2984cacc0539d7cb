package agenttest

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

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// Record is the record that the control plane has of the database.
func (w Wanted) Record() database.Record {
	return database.Record{ID: w.DatabaseID(), Name: w.Name, RoleModel: w.Model}
}

// Wanted is a database that a test wants made.
type Wanted struct {
	ID, Operation string
	Name          string
	Model         database.RoleModel
	Cap           int
	Passwords     map[database.Login]string
	Verifiers     map[database.Login]string
}

// NewUUID is a random ID.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return string(id.FromBytes[id.OperationID](b))
}

// Want is a managed database with a name that no other test uses.
func Want(model database.RoleModel) Wanted {
	w := Wanted{
		ID: NewUUID(), Operation: NewUUID(), Name: "db-" + strings.ToLower(rand.Text()[:10]), Model: model, Cap: 10,
		Passwords: map[database.Login]string{}, Verifiers: map[database.Login]string{},
	}
	for _, l := range model.Logins() {
		var salt [16]byte
		_, _ = rand.Read(salt[:])
		w.Passwords[l] = rand.Text()
		w.Verifiers[l] = credential.Verifier(w.Passwords[l], salt, credential.Iterations)
	}
	return w
}

// Names are those of the roles of the database.
func (w Wanted) Names() database.Names { return database.RoleNames(w.DatabaseID(), w.Name) }

// Login returns the username of a login, and its password.
func (w Wanted) Login(l database.Login) (name, password string) {
	return w.Names().Of(l), w.Passwords[l]
}

// BackupKey is the key of every database.
var BackupKey = bytes.Repeat([]byte("k"), backup.KeyBytes)

// Create is the command that makes the database.
func (w Wanted) Create() protocol.Command {
	c := command.EnsureDatabase{
		DatabaseID: w.DatabaseID(), Name: w.Name, RoleModel: w.Model, ConnectionCap: w.Cap, BackupKey: BackupKey,
	}
	for _, l := range w.Model.Logins() {
		c.Logins = append(c.Logins, command.Login{
			Login: l, Username: w.Names().Of(l), Verifier: w.Verifiers[l], Password: w.Passwords[l],
		})
	}
	return Told(w.Operation, 1, c)
}

// DatabaseID is ID, typed.
func (w Wanted) DatabaseID() id.DatabaseID { return id.DatabaseID(w.ID) }

// Access is the command that opens or closes the database.
func (w Wanted) Access(generation int64, open, disconnect bool) protocol.Command {
	return Told(NewUUID(), 1, command.SetAccess{
		DatabaseID: w.DatabaseID(), Generation: generation, Open: open, Disconnect: disconnect,
	})
}

// Allowlist is the command that sets the allowlist, also to what is no network.
func (w Wanted) Allowlist(generation int64, networks ...string) protocol.Command {
	c := Told("", 0, command.SetAllowlist{DatabaseID: w.DatabaseID(), Generation: generation})
	list, err := json.Marshal(append([]string{}, networks...)) // also what is no network
	if err != nil {
		panic(err)
	}
	c.Payload = bytes.Replace(c.Payload, []byte("[]"), list, 1)
	c.PayloadHash = protocol.Hash(c.Payload)
	return c
}

// Backup is the command that makes a backup.
func (w Wanted) Backup(operation, filename string, verify bool) protocol.Command {
	return Told(operation, 1, command.Backup{DatabaseID: w.DatabaseID(), Filename: backup.Filename(filename), Verify: verify})
}

// Past is the command for a file of a moment.
func (w Wanted) Past(operation, filename string, at time.Time) protocol.Command {
	return Told(operation, 1, command.Backup{
		DatabaseID: w.DatabaseID(), Filename: backup.Filename(filename), Passing: true, At: &at,
	})
}

// Closing is the command that closes an operation.
func Closing(operation string) protocol.Command {
	return Told(operation, 1, command.Close{OperationID: id.OperationID(operation)})
}

// Told is a command as a control plane sends it.
func Told(operation string, epoch int64, c command.Command) protocol.Command {
	payload, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return protocol.Command{
		Kind: c.About().Kind, OperationID: operation, Epoch: epoch, Step: command.Step(c), Resource: c.About().Resource,
		Generation: c.About().Generation, PayloadHash: protocol.Hash(payload), Payload: payload, Secrets: command.Secrets(c),
	}
}

// Request sends a request with the shared secret; an error is an unknown outcome.
func (s *Stack) Request(method, path string, body []byte) (int, []byte, error) {
	r, err := http.NewRequest(method, "https://"+s.Config.Listen+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+Secret)
	r.Header.Set(protocol.Header, strconv.Itoa(command.Protocol))
	answer, err := s.Client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// Send sends a command and returns its result, or the reason why not.
func (s *Stack) Send(c protocol.Command) (result json.RawMessage, reason string, err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, "", err
	}
	status, text, err := s.Request(http.MethodPost, "/v1/commands", body)
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

// Done sends a command that must be done.
func (s *Stack) Done(t testing.TB, c protocol.Command) json.RawMessage {
	t.Helper()
	result, reason, err := s.Send(c)
	if err != nil || reason != "" {
		t.Fatalf("%s: %s %v", c.Kind, reason, err)
	}
	return result
}

// DoneInTheEnd sends a command again for as long as it is unavailable: an opt-in gives others of the agent their turns, and
// after a crash PgBouncer may not get into PostgreSQL at once.
func (s *Stack) DoneInTheEnd(t testing.TB, c protocol.Command) {
	t.Helper()
	for began := time.Now(); ; {
		_, reason, err := s.Send(c)
		switch {
		case err == nil && reason == "":
			return
		case err != nil || !IsForLater(reason) || time.Since(began) > 2*time.Minute:
			t.Fatalf("%s: %s %v", c.Kind, reason, err)
		}
	}
}

// IsForLater reports whether a command that was refused with these words is to be sent again.
func IsForLater(reason string) bool {
	return strings.HasPrefix(reason, string(command.ReasonUnavailable)) ||
		strings.HasPrefix(reason, string(command.ReasonUnfinished))
}

// RefusedFor sends a command that must be refused for a reason.
func (s *Stack) RefusedFor(t testing.TB, reason command.Reason, c protocol.Command) {
	t.Helper()
	_, got, err := s.Send(c)
	if err != nil || !strings.HasPrefix(got, string(reason)+":") {
		t.Errorf("%s: got %q (%v), want a refusal for %q", c.Kind, got, err, reason)
	}
}

// Compact is an ID as the agent has it in names.
func Compact(uuid string) string { return id.Compact(id.OperationID(uuid)) }

// TellAccounts tells the agent whose the databases are.
func (s *Stack) TellAccounts(t *testing.T, all map[string][]Wanted) {
	t.Helper()
	var list command.SetAccounts
	for account, databases := range all {
		for _, w := range databases {
			list.Databases = append(list.Databases, database.Ownership{DatabaseID: w.DatabaseID(), AccountID: id.AccountID(account)})
		}
	}
	body := check.Must(json.Marshal(list))(t)
	if status, text, err := s.Request(http.MethodPut, "/v1/accounts", body); err != nil || status != http.StatusNoContent {
		t.Fatal(status, string(text), err)
	}
}
