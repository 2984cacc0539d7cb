package doctor

import (
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/drill"
)

// archives are what an agent can say of the key of its archive.
var archives = []struct {
	what  string
	key   []byte
	has   string
	codes []Code
}{
	{what: "no key yet", key: []byte("key")},
	{what: "the key", key: []byte("key"), has: command.ArchiveKeyMark("key")},
	{what: "another key", key: []byte("key"), has: command.ArchiveKeyMark("other"), codes: []Code{ArchiveKeyDiffers}},
	{what: "a key that cannot be opened", has: command.ArchiveKeyMark("key"), codes: []Code{ArchiveKeyDiffers}},
}

// drilled are the outcomes of the last drill that could tell.
var drilled = map[drill.Outcome][]Code{drill.Proven: nil, drill.Failed: {DrillFailed}}

func TestExamineDrill(t *testing.T) {
	for outcome, codes := range drilled {
		wantCodes(t, ExamineDrill("one", &drill.Drill{Outcome: outcome, Why: "wrong"}), codes...)
	}
	wantCodes(t, ExamineDrill("one", nil))
}

func TestExamineArchive(t *testing.T) {
	for _, a := range archives {
		t.Run(a.what, func(t *testing.T) {
			wantCodes(t, ExamineArchive("one", a.key, command.Archive{KeyMark: a.has}), a.codes...)
		})
	}
}
