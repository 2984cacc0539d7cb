package httpapi

import (
	stdjson "encoding/json"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/querytimeouts"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
)

const (
	knownID   = "0b5c1f4e-7a52-4f0d-9d3e-1c2b3a4d5e6f"
	foreignID = "11111111-2222-4333-8444-555555555555"
)

// The wire shapes, byte for byte as the spec names their fields.
func TestWireShapes(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 30, 0, 0, time.FixedZone("east", 3600))
	record := database.Record{
		ID: knownID, Name: "shop", DisplayName: "Shop", Host: "db.example", Port: 6432, Status: database.Active,
		SizeBytes: 7, CreatedAt: at, Environment: database.Staging, Schedule: database.Daily, PostgresVersion: 17,
		Plan: account.Free, Settings: database.Settings{StorageStatus: database.StorageFull},
	}
	plain := record
	plain.Environment = ""
	upgraded := record
	upgraded.WayBack = 16
	const shown = `"id":"` + knownID + `","name":"shop","displayName":"Shop","host":"db.example","port":6432,` +
		`"database":"shop","username":"shop","status":"active","sizeBytes":7,"createdAt":"2026-03-01T11:30:00Z",`
	const room = `,"storage":{"quotaBytes":1073741824,"status":"full"},"scheduledBackup":"daily","postgresVersion":17`
	work := operation.Operation{
		ID: foreignID, DatabaseID: knownID, Kind: "backup", Status: operation.Queued, CreatedAt: at,
		Stage: operation.StageQueued,
	}
	done, failing := work, work
	done.Status, done.Progress, done.Result, done.FinishedAt = operation.Succeeded, 100, stdjson.RawMessage(`{"filename":"f"}`), &at
	failing.Status, failing.ErrorCode, failing.ErrorText = operation.Running, fault.BackupNotVerified, "not equal"
	failed, moving := failing, failing
	failed.Status = operation.Failed
	moving.BytesDone, moving.BytesTotal = 0, 9
	stale := moving // of an operation that is over
	stale.Status = operation.Failed
	change := work
	change.Kind, change.Input = "extension", operation.Encode(extension.Input{Extension: "citext", IdempotencyKey: "ab"})
	const workShown = `{"id":"` + foreignID + `","type":"backup",`
	changed := querytimeouts.State{
		Settings: database.Settings{
			SettingsGeneration: 3, TimeoutProfile: querytimeout.Short, TimeoutEffective: querytimeout.NotConfigured,
		},
		Change: &work, InForce: &command.SettingsInForce{
			DatabaseOID: 16385, StatementMs: 15_000, LockMs: 1000, IdleInTransactionMs: 5000,
			RoleOverrides: []command.RoleOverride{{Role: "r", Setting: "lock_timeout", Value: "1min"}},
		},
	}
	const workTail = `"databaseId":"` + knownID + `","createdAt":"2026-03-01T11:30:00Z","startedAt":null,`
	for _, c := range []struct {
		view any
		want string
	}{
		{viewDatabase(record), `{` + shown + `"environment":"staging"` + room + `}`},
		{viewDatabase(upgraded), `{` + shown + `"environment":"staging"` + room + `,"upgradedFrom":16}`},
		{viewDatabase(plain), `{` + shown + `"environment":null` + room + `}`},
		{wire.CreatedDatabase{Database: viewDatabase(plain), Password: "pw", ConnectionString: "postgresql://x"},
			`{` + shown + `"environment":null` + room + `,"password":"pw","connectionString":"postgresql://x"}`},
		{wire.CreatedDatabase{Database: viewDatabase(plain)}, `{` + shown + `"environment":null` + room + `}`},
		{viewOperation(work), workShown + `"status":"queued","stage":"queued","progress":0,"result":null,"error":null,` +
			workTail + `"finishedAt":null}`},
		{viewOperation(done), workShown + `"status":"succeeded","stage":"queued","progress":100,"result":{"filename":"f"},` +
			`"error":null,` + workTail + `"finishedAt":"2026-03-01T11:30:00Z"}`},
		{viewOperation(failing), workShown + `"status":"running","stage":"queued","progress":0,"result":null,"error":null,` +
			workTail + `"finishedAt":null}`},
		{viewOperation(moving), workShown + `"status":"running","stage":"queued","progress":0,` +
			`"progressBytes":{"done":0,"total":9},"result":null,"error":null,` + workTail + `"finishedAt":null}`},
		{viewOperation(stale), workShown + `"status":"failed","stage":"queued","progress":0,"result":null,` +
			`"error":{"code":"BACKUP_NOT_VERIFIED","message":"not equal"},` + workTail + `"finishedAt":null}`},
		{viewOperation(failed), workShown + `"status":"failed","stage":"queued","progress":0,"result":null,` +
			`"error":{"code":"BACKUP_NOT_VERIFIED","message":"not equal"},` + workTail + `"finishedAt":null}`},
		{viewBackup(backup.Backup{Filename: "20260101_000000.sql.gz", OperationID: foreignID, Trigger: backup.Manual,
			Format: "sql.gz", SizeBytes: 9, ChecksumSHA256: "ab", CreatedAt: at, VerifiedAt: &at}),
			`{"filename":"20260101_000000.sql.gz","operationId":"` + foreignID + `","trigger":"manual","format":"sql.gz",` +
				`"sizeBytes":9,"checksumSha256":"ab","createdAt":"2026-03-01T11:30:00Z","verifiedAt":"2026-03-01T11:30:00Z",` +
				`"expiresAt":null,"roleManifest":false}`},
		{viewExtension(extension.Entry{Name: "citext", Available: true, Trusted: true, DefaultVersion: "1.6"}),
			`{"name":"citext","available":true,"trusted":true,"restoreQualified":false,"defaultVersion":"1.6",` +
				`"installedVersion":null,"schema":null}`},
		{viewExtension(extension.Entry{Name: "pg_trgm", RestoreQualified: true, InstalledVersion: "1.3", Schema: "app"}),
			`{"name":"pg_trgm","available":false,"trusted":false,"restoreQualified":true,"defaultVersion":"",` +
				`"installedVersion":"1.3","schema":"app"}`},
		{check.Must(viewExtensionOperation(change))(t), `{"id":"` + foreignID + `","type":"extension","status":"queued",` +
			`"stage":"queued","progress":0,"result":null,"error":null,` + workTail + `"finishedAt":null,"idempotencyKey":"ab"}`},
		{viewEntry(database.AllowlistEntry{ID: foreignID, CIDR: "10.0.0.0/8", CreatedAt: at}),
			`{"id":"` + foreignID + `","cidr":"10.0.0.0/8","description":"","createdAt":"2026-03-01T11:30:00Z"}`},
		{viewActivity(base.By[audit.Entry]{
			What:   audit.Entry{ID: foreignID, At: at, Actor: audit.ByKey("pgh_k", foreignID), Action: audit.DatabaseCreated},
			Person: &account.User{ID: foreignID, Email: "ada@example.org", Name: "Ada"},
		}), `{"id":"` + foreignID + `","at":"2026-03-01T11:30:00Z","actor":"key:pgh_k",` +
			`"person":{"userId":"` + foreignID + `","name":"Ada"},"action":"database.created","details":{}}`},
		{viewActivity(base.By[audit.Entry]{
			What: audit.Entry{ID: foreignID, At: at, Actor: audit.System, Action: audit.BackupExpired},
		}), `{"id":"` + foreignID + `","at":"2026-03-01T11:30:00Z","actor":"system","person":null,` +
			`"action":"backup.expired","details":{}}`},
		{viewTimeouts(querytimeouts.State{Settings: database.NoSettings()}), timeoutsShown("null", "null", `"not_configured"`, "null") +
			`"generation":0,` + policyShown + `"roleOverrides":null}}`},
		{viewTimeouts(changed), timeoutsShown("16385", `{"statementTimeoutMs":15000,"lockTimeoutMs":1000,`+
			`"idleInTransactionTimeoutMs":5000}`, `"short"`, `{"id":"`+foreignID+`","status":"queued"}`) +
			`"generation":3,` + policyShown + `"roleOverrides":[{"role":"r","setting":"lock_timeout","value":"1min"}]}}`},
	} {
		text, err := json.Marshal(c.view)
		if err != nil {
			t.Fatalf("%T: %v", c.view, err)
		}
		if string(text) != c.want {
			t.Errorf("%T:\n got %s\nwant %s", c.view, text, c.want)
		}
	}
}

func timeoutsShown(oid, current, desired, operation string) string {
	return `{"data":{"databaseOid":` + oid + `,"current":` + current + `,"desiredProfile":` + desired +
		`,"effectiveProfile":"not_configured","operation":` + operation + `,`
}

const policyShown = `"policyVersion":1,"profiles":[` +
	`{"profile":"standard","statementTimeoutMs":60000,"lockTimeoutMs":10000,"idleInTransactionTimeoutMs":30000},` +
	`{"profile":"balanced","statementTimeoutMs":30000,"lockTimeoutMs":3000,"idleInTransactionTimeoutMs":15000},` +
	`{"profile":"short","statementTimeoutMs":15000,"lockTimeoutMs":1000,"idleInTransactionTimeoutMs":5000}],`
