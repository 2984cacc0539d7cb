package app

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

// selfEvident are the codes without advice.
var selfEvident = map[fault.Code]string{
	fault.ValidationError:            "the message names the field, and what it must be",
	fault.LoginRequired:              "it is only for people, and svc has a key",
	fault.RestoreOperationTerminal:   "svc begins no restore with an idempotency key",
	fault.RestoreShrinks:             "it stands in a failed operation, which says why",
	fault.UploadIncomplete:           "it stands in a failed operation, which says why",
	fault.ExtensionPreparationFailed: "it stands in a failed operation, which says why",
}

func TestEveryRefusalSaysWhatToDo(t *testing.T) {
	for _, e := range fault.Table {
		if reason := selfEvident[e.Code]; (Advice[e.Code] == "") == (reason == "") {
			t.Errorf("%s: the advice is %q, and the reason for none %q", e.Code, Advice[e.Code], reason)
		}
	}
}
