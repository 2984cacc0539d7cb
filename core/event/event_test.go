package event

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
)

const (
	operationID = "0189abcd-ef01-4234-8567-89abcdef0123"
	databaseID  = "1189abcd-ef01-4234-8567-89abcdef0123"
)

func TestPayloadHasTheSpecsFields(t *testing.T) {
	o := operation.Operation{
		ID: operationID, DatabaseID: databaseID, AccountID: "an account", Kind: "backup", Status: operation.Succeeded,
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
		p := Of(o, "shop", at)
		got, err := json.Marshal(p)
		want := `{"id":"` + operationID + `","event":"backup.` + v.status + `","createdAt":"2026-01-05T09:30:00.25Z","data":{` +
			`"operationId":"` + operationID + `","databaseId":"` + databaseID + `","databaseName":"shop","status":"` + v.status +
			`","stage":"finished","progress":100,"error":` + v.error + `}}`
		if err != nil || string(got) != want {
			t.Errorf("%s:\n have %s\n want %s", name, got, want)
		}
	}
}

func TestTheEventOfADamagedBackup(t *testing.T) {
	const own = "2189abcd-ef01-4234-8567-89abcdef0123"
	at := time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)
	b := backup.Backup{OperationID: operationID, DatabaseID: databaseID, Filename: "20260105_093000.sql.gz"}
	got, err := json.Marshal(OfDamage(own, b, "shop", at))
	want := `{"id":"` + own + `","event":"backup.damaged","createdAt":"2026-01-05T09:30:00Z","data":{"operationId":"` + operationID +
		`","databaseId":"` + databaseID + `","databaseName":"shop","status":"failed","stage":"damaged","progress":100,` +
		`"error":{"code":"BACKUP_NOT_VERIFIED","message":"the backup 20260105_093000.sql.gz was found damaged where it is stored; ` +
		`a new one is made"}}}`
	if err != nil || string(got) != want {
		t.Errorf("\n have %s\n want %s", got, want)
	}
}
