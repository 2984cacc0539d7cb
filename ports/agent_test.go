package ports_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

// answering is an agent that answers everything with the same text.
type answering struct {
	ports.Agent
	text string
}

func (a answering) Do(context.Context, ports.Fence, command.Command) (json.RawMessage, error) {
	return json.RawMessage(a.text), nil
}

func (a answering) Ask(context.Context, command.Question) (json.RawMessage, error) {
	return json.RawMessage(a.text), nil
}

// told is what comes of a command that is answered with a text.
func told[R any](t *testing.T, c command.Returning[R], text string) error {
	_, err := ports.Do(t.Context(), answering{text: text}, ports.Fence{}, c)
	return err
}

// asked is what comes of a question.
func asked[R any](t *testing.T, q command.Asking[R], text string) error {
	_, err := ports.Ask(t.Context(), answering{text: text}, q)
	return err
}

// Of an answer that does not say what became of the work, nobody believes that it has come to an end, well or badly.
func TestAnAnswerThatTellsNothing(t *testing.T) {
	for _, text := range []string{"{}", "null", `{"message":"m","progress":100}`} {
		for i, err := range []error{
			told(t, command.Backup{}, text), told(t, command.Load{}, text), told(t, command.Follow{}, text),
			told(t, command.ChangeExtension{}, text), told(t, command.QualifyExtension{}, text),
			told(t, command.Rescue{}, text), told(t, command.CompareMoments{}, text), told(t, command.FindMoment{}, text),
			asked(t, command.RereadBackup{}, text), asked(t, command.AdoptBackup{}, text), asked(t, command.InspectLogin{}, text),
			asked(t, command.Drill{}, text),
		} {
			if err == nil {
				t.Errorf("%s is an answer to number %d", text, i)
			}
		}
	}
	for text, err := range map[string]error{
		"a running backup": told(t, command.Backup{}, `{"state":"running"}`), "nothing to tell": told(t, command.SetAccess{}, "null"),
	} {
		if err != nil {
			t.Error(fmt.Errorf("%s: %w", text, err))
		}
	}
}
