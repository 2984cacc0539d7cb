package command_test

import (
	"encoding/json"
	"reflect"
	"testing"

	strict "github.com/go-json-experiment/json"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

// receive reads a command of a type as an agent does.
func receive(of command.Command, payload []byte, e command.Envelope) (command.Command, error) {
	got := reflect.New(reflect.TypeOf(of))
	if err := strict.Unmarshal(payload, got.Interface(), strict.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	command.Receive(got.Interface(), e)
	c := got.Elem().Interface().(command.Command)
	_ = c.About()
	return c, c.Check()
}

// Whatever comes in the place of a command, it is refused, or is one that is the same when it is sent again.
func FuzzCommands(f *testing.F) {
	for i, c := range all {
		secrets := check.Must(json.Marshal(c.secrets))(f)
		f.Add(i, []byte(c.payload), secrets, c.command.About().Generation)
		f.Add(i+1, []byte(c.payload), []byte("{}"), int64(-1))
	}
	f.Add(0, []byte("null"), []byte("null"), int64(0))
	f.Fuzz(func(t *testing.T, which int, payload, secrets []byte, generation int64) {
		e := command.Envelope{OperationID: op, Generation: generation}
		if json.Unmarshal(secrets, &e.Secrets) != nil {
			t.Skip("these are no secrets")
		}
		of := all[uint(which)%uint(len(all))].command
		got, err := receive(of, payload, e)
		if err != nil {
			return
		}
		sent := check.Must(json.Marshal(got))(t)
		e = command.Envelope{OperationID: op, Generation: got.About().Generation, Secrets: command.Secrets(got)}
		again, err := receive(of, sent, e)
		if err != nil {
			t.Fatalf("%s becomes %s, which is refused: %v", payload, sent, err)
		}
		if text := check.Must(json.Marshal(again))(t); string(text) != string(sent) || again.About() != got.About() ||
			!reflect.DeepEqual(command.Secrets(again), command.Secrets(got)) {
			t.Errorf("%s becomes %s, and that %s", payload, sent, text)
		}
	})
}

// Whatever an agent answers, what is taken for a report says of its progress what can be, and has a reason that there is where it
// says that it has failed; and no refusal is read as anything else.
func FuzzReports(f *testing.F) {
	for _, seed := range []string{
		`{"state":"running","stage":"dumping","progress":140,"bytes":{"done":10,"total":9}}`,
		`{"state":"failed","reason":"of tomorrow","message":"m","notes":["n"]}`, `{"state":"done"}`, `{"bytes":{"done":-1,"total":-9}}`,
		`{"condition":"current"}`, "null", "[]", `{"progress":1e400}`, `{"state":7}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var backup command.BackupReport
		if json.Unmarshal(text, &backup) == nil {
			possible(t, text, backup.Progress, backup.Bytes)
		}
		var load command.LoadReport
		if json.Unmarshal(text, &load) == nil {
			possible(t, text, load.Progress, load.Bytes)
			if len(load.Notes) > command.MostNotes {
				t.Errorf("%s has %d notes", text, len(load.Notes))
			}
		}
		for _, report := range []any{
			&command.ExtensionReport{}, &command.RescueReport{}, &command.ComparisonReport{}, &command.SearchReport{},
			&command.LoginState{}, &command.Outcome{}, &command.Capabilities{}, &command.Refusal{}, &command.Applied{}, &command.Used{},
		} {
			if json.Unmarshal(text, report) == nil {
				check.Must(json.Marshal(report))(t) // what was read is written
			}
		}
	})
}

func possible(t *testing.T, text []byte, progress int, bytes command.Bytes) {
	t.Helper()
	if progress < 0 || progress > 100 || bytes.Done < 0 || bytes.Total < 0 || bytes.Done > bytes.Total && bytes.Total > 0 {
		t.Errorf("%s is at %d %%, %+v", text, progress, bytes)
	}
}
