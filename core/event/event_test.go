package event

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
)

func TestCatalogue(t *testing.T) {
	want := []Name{
		"backup.succeeded", "backup.failed", "backup.canceled", "restore.succeeded", "restore.failed", "restore.canceled",
		"clone.succeeded", "clone.failed", "clone.canceled", "delete.succeeded", "delete.failed", "delete.canceled",
		"recover.succeeded", "recover.failed", "recover.canceled", "extension.succeeded", "extension.failed", "extension.canceled",
	}
	if got := Catalogue(); !slices.Equal(got, want) {
		t.Error(got)
	}
}

// Exactly the public kinds make events, and exactly in a final status; every event is in the catalogue.
func TestWhatMakesAnEvent(t *testing.T) {
	for _, k := range append([]operation.Kind{operation.Create, operation.Lifecycle}, operation.PublicKinds...) {
		for _, s := range operation.Statuses {
			p, ok := Of(operation.Operation{Kind: k, Status: s}, "shop", time.Unix(0, 0))
			if want := k.Public() && s.Final(); ok != want {
				t.Errorf("%s %s: %v", s, k, ok)
			}
			if ok && !slices.Contains(Catalogue(), p.Event) {
				t.Errorf("%s is in no catalogue", p.Event)
			}
		}
	}
}

const (
	operationID = "0189abcd-ef01-4234-8567-89abcdef0123"
	databaseID  = "1189abcd-ef01-4234-8567-89abcdef0123"
)

func TestPayloadHasTheSpecsFields(t *testing.T) {
	o := operation.Operation{
		ID: operationID, DatabaseID: databaseID, AccountID: "an account", Kind: operation.Backup, Status: operation.Succeeded,
		Stage: "finished", Progress: 100, Result: []byte(`{"filename":"f"}`), RequestID: "r",
	}
	at := time.Date(2026, 1, 5, 10, 30, 0, 250_000_000, time.FixedZone("CET", 3600))
	cases := map[string]struct{ status, error string }{
		"succeeded": {"succeeded", "null"},
		"failed":    {"failed", `{"code":"BACKUP_NOT_VERIFIED","message":"why"}`},
		"canceled":  {"canceled", "null"},
	}
	for name, v := range cases {
		o.Status, o.ErrorCode, o.ErrorText = operation.Status(v.status), "", ""
		if v.error != "null" {
			o.ErrorCode, o.ErrorText = fault.BackupNotVerified, "why"
		}
		p, ok := Of(o, "shop", at)
		got, err := json.Marshal(p)
		want := `{"id":"` + operationID + `","event":"backup.` + v.status + `","createdAt":"2026-01-05T09:30:00.25Z","data":{` +
			`"operationId":"` + operationID + `","databaseId":"` + databaseID + `","databaseName":"shop","status":"` + v.status +
			`","stage":"finished","progress":100,"error":` + v.error + `}}`
		if !ok || err != nil || string(got) != want {
			t.Errorf("%s:\n have %s\n want %s", name, got, want)
		}
	}
}
