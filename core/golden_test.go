package core_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/rebuild"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/core/webhook"
)

// The files under docs that follow from tables in the core. "make generate" sets the variable; -update does the same for
// this package alone.
var update = flag.Bool("update", os.Getenv("PGHERD_UPDATE_GOLDEN") != "", "rewrite the generated files under docs")

func golden(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("..", "docs", name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("docs/%s does not follow from the core any more; run make generate", name)
	}
}

// meaning explains one state in the docs.
type meaning[S ~string] struct {
	state S
	text  string
}

var databaseStates = []meaning[database.Status]{
	{database.Creating, "is being created on its server; nobody can log in"},
	{database.Active, "customers can log in"},
	{database.Stopped, "is complete, but customers cannot log in"},
	{database.Deleting, "is closed for customers; a delete operation is open"},
	{database.Error, "could not be created, and its leftovers are being removed; or a lifecycle action was refused, and so was " +
		"undoing it, which is tried again"},
	{database.Deleted, "is renamed and closed on its server; " +
		"it can be recovered until it is purged, and the API knows it only as a " +
		"deleted one"},
	{database.Purging, "is being removed for good, with its backups"},
}

var storageStates = []meaning[database.StorageStatus]{
	{database.StorageOK, "is within its storage quota"},
	{database.StorageFull, "is read-only by default for its logins, which can override that in a session, to delete"},
	{database.StorageClosed, "is far above its quota: nobody can connect until the operator raises the quota or opens it, or a " +
		"backup within the quota is restored"},
}

var overlayStates = []meaning[database.OverlayStatus]{
	{database.NoOverlay, "has not opted in"},
	{database.OverlayReserved, "is recorded; how much of it exists on the server is not known, and the opt-in can be repeated"},
	{database.OverlayActive, "its group roles and their rights are proven to exist"},
}

var operationStates = []meaning[operation.Status]{
	{operation.Queued, "waits for a worker; nothing has been done yet"},
	{operation.Running, "a worker holds it under a lease, or it pauses before the next attempt"},
	{operation.Succeeded, "final: the agent has confirmed the outcome"},
	{operation.Failed, "final: the agent has recorded it closed, and `error` says why"},
	{operation.Canceled, "final: a user ended it before it changed anything"},
}

var restoreStages = []meaning[stage.Stage]{
	{stage.Queued, "is reserved; nothing has been done, and only other operations are blocked"},
	{restore.Loading, "the copy is being made and compared; shown as the agent's present step"},
	{restore.Ready, "the copy is complete and equal to the backup; the next advance switches"},
	{restore.Switching, "the point of no return: the copy may have become the database; it continues until the agent confirms"},
	{restore.Settling, "the copy is the database; its settings are bound to it, and the old one is being dropped"},
	{stage.Failing, "nothing was switched; the copy is being dropped"},
	{stage.Canceling, "nothing was switched; the copy is being dropped"},
	{stage.Succeeded, "final"},
	{stage.Failed, "final: the database is as it was, and `error` says why"},
	{stage.Canceled, "final: the database is as it was"},
}

var backupStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done"},
	{backup.Making, "the backup is being made and verified; shown as the agent's present step"},
	{stage.Succeeded, "final: there is a backup"},
	{stage.Failed, "final: there is none, or one that is not verified, and `error` says why"},
	{stage.Canceled, "final: there is none"},
}

var lookStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done"},
	{recovery.Looking, "the database is being had back beside itself, and looked at there; shown as the agent's present step"},
	{stage.Succeeded, "final: what was asked for is in `result` or, of a rescue, in the schema that it names"},
	{stage.Failed, "final: nothing has changed, and `error` says why"},
	{stage.Canceled, "final: nothing has changed"},
}

var extensionStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done"},
	{extension.Changing, "the extension is being changed; shown as the agent's present step"},
	{stage.Failing, "the agent is asked whether the change is made after all"},
	{stage.Succeeded, "final: the extension is changed"},
	{stage.Failed, "final: `error` says whether anything was changed"},
	{stage.Canceled, "final: nothing was changed"},
}

var rebuildStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done; the record already names the other server"},
	{rebuild.Making, "the database, its logins and its roles are being made there, empty and closed"},
	{rebuild.Dumping, "the database is being had back from the archive of the server that is gone"},
	{rebuild.Adopting, "the newest verified backup is being taken over, where the archive does not have the database"},
	{rebuild.Loading, "the copy is being made and compared; shown as the agent's present step"},
	{rebuild.Switching, "the point of no return: the copy may have become the database, and it continues until the agent says so"},
	{rebuild.Opening, "the copy is the database; its owner's login is being proven, and its roles are admitted"},
	{rebuild.Settling, "the other backups are being taken over; customers work meanwhile"},
	{stage.Failing, "nothing was switched; what was made is being removed"},
	{stage.Succeeded, "final: the database is as it was last, but for what its result says was lost"},
	{stage.Failed, "final: the record names the server that is gone again, and `error` says why"},
	{stage.Canceled, "final: likewise"},
}

var rehearsalStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done"},
	{rehearsal.Making, "the database, its logins and its roles are being made at the other server, empty and closed"},
	{rehearsal.Admitting, "the agents of both servers are being made known to each other"},
	{rehearsal.Dumping, "a file is being made of the database"},
	{rehearsal.Loading, "the copy is being made, compared and removed; shown as the agent's present step"},
	{rehearsal.Clearing, "it is known what breaks, and everything else is being removed at both servers"},
	{stage.Failing, "the failure is known, and what was begun is being removed at both servers"},
	{stage.Canceling, "the same after a request to cancel"},
	{stage.Succeeded, "what was found is kept, which may be nothing"},
	{stage.Failed, "nothing is left of the copy, and nothing is known of what breaks"},
	{stage.Canceled, "the same"},
}

var moveStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done"},
	{move.Making, "the database, its logins and its roles are being made at the other server, empty and closed"},
	{move.Admitting, "the agents of both servers are being made known to each other"},
	{move.Shutting, "customers are being kept out, of a move that is closed"},
	{move.Dumping, "a file is being begun, of the moment from which on changes are kept, or of the end"},
	{move.Loading, "the copy is being made of the file, also while that is being written, and compared; shown as the agent's " +
		"present step"},
	{move.Switching, "the copy becomes the other server's database, which nobody gets into"},
	{move.Following, "the other server applies the changes since, until little is missing"},
	{move.Parting, "customers are kept out, and the rest of the changes is taken over: undone after seconds, or it is the pivot"},
	{move.Serving, "the record names the other server, which lets customers in; there is no way back"},
	{move.Departing, "the database is being dropped where it was, and who still comes there is sent on"},
	{move.Settling, "the backups are being carried over; customers work meanwhile"},
	{move.Leaving, "what the server that was left has kept until now is being removed"},
	{stage.Failing, "the database is open where it was; what was begun is being taken back at both servers"},
	{stage.Canceling, "likewise, after a request"},
	{stage.Succeeded, "final: the database is the other server's"},
	{stage.Failed, "final: the database is where and as it was, and `error` says why"},
	{stage.Canceled, "final: the database is where and as it was"},
}

var adoptionStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done; the record is `creating`"},
	{adoption.Taking, "the agent is told whose the database is, and carries out a command for the record"},
	{stage.Failing, "the agent has refused for good"},
	{stage.Succeeded, "final: the record is as the server has the database; what was to be dropped is `deleting`"},
	{stage.Failed, "final: there is no record, the database stays as it is, and `error` says why"},
	{stage.Canceled, "final: there is no record, and the database stays as it is"},
}

var cloneStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done; the clone's record exists, and its password was returned"},
	{clone.Making, "the new database and its logins are being made, empty and closed"},
	{clone.Dumping, "a file is being made of the source as it is now; only if no backup was named"},
	{clone.Loading, "the copy is being made and compared; shown as the agent's present step"},
	{clone.Switching, "the point of no return: the copy may have become the clone, and it continues until the agent confirms it"},
	{clone.Settling, "the copy is the clone; its owner's login is being proven, and what was needed to make it is removed"},
	{stage.Failing, "nothing was switched; what was made is being removed"},
	{stage.Canceling, "nothing was switched; what was made is being removed"},
	{stage.Succeeded, "final: the clone is active"},
	{stage.Failed, "final: there is no clone, its name is free, and `error` says why"},
	{stage.Canceled, "final: there is no clone, and its name is free"},
}

var leaseStates = []meaning[preview.Lease]{
	{preview.Active, "the pipeline may use the preview and renew the lease"},
	{preview.Expired, "it has ended, which the API shows at once; the service deletes the preview as soon as it can"},
	{preview.Deleting, "a delete operation of the preview is open, or its outcome is unknown"},
	{preview.Deleted, "the preview can be recovered until it is purged; its ref is free"},
	{preview.Recovering, "a recovery is open, and the ref is taken; the API shows `deleted`"},
}

var deletionStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done; the record is `deleting`"},
	{deletion.Closing, "customers are being kept out, and their sessions ended"},
	{deletion.BackingUp, "the deletion backup is being made and verified; skipped if the operator deletes without one"},
	{deletion.Isolating, "the point of no return: the database may be out of service, and it continues until the agent confirms it"},
	{stage.Failing, "nothing was isolated; the database is being opened as it was, and the backup removed"},
	{stage.Canceling, "nothing was isolated; the database is being opened as it was, and the backup removed"},
	{stage.Succeeded, "final: a tombstone is left"},
	{stage.Failed, "final: the database is as it was, and `error` says why"},
	{stage.Canceled, "final: the database is as it was"},
}

var recoveryStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done; the database counts against the quota again"},
	{deletion.Rejoining, "the database is being put back into service, and it continues until the agent confirms it"},
	{stage.Failing, "the agent has refused for good; what it has begun is being undone"},
	{stage.Succeeded, "final: the database is what it was"},
	{stage.Failed, "final: the database is deleted as before, and `error` says why"},
	{stage.Canceled, "final: the database is deleted as before"},
}

var purgeStages = []meaning[stage.Stage]{
	{stage.Queued, "nothing has been done; the record is `purging`"},
	{deletion.Removing, "its files, the database and its logins are being removed from the server"},
	{stage.Failing, "an operator keeps the database, which is being put into service"},
	{stage.Succeeded, "final: nothing is left, and its name is free"},
	{stage.Failed, "final: the database is what it was before its deletion"},
}

var roleStates = []meaning[role.Status]{
	{role.Reserved, "is recorded with its password; what exists on the server is not known"},
	{role.SQLReady, "exists on the server and cannot log in"},
	{role.Ready, "can log in"},
	{role.Updating, "a rotation or revocation is not proven yet; the password is not revealed"},
	{role.Revoked, "is proven to be shut out; keeps its slot and what it owns, and has no password"},
	{role.Expired, "its password's validity has ended: it is shut out or about to be, and can be revoked and deleted"},
	{role.Removed, "final: gone from the server; never listed; its ordinal and key are not used again"},
}

var changeStates = []meaning[role.ChangeStatus]{
	{role.Pending, "is being carried out, or its outcome is unknown; while it lasts, nothing else changes the logins, " +
		"stops or starts the database"},
	{role.Completed, "final: proven by the agent, or seen at the login after the server had refused for good"},
	{role.Refused, "final: nothing was changed, because of dependencies or because the server refuses; or an operator has ended it"},
}

var sessionStates = []meaning[person.Status]{
	{person.AwaitsFactor, "the password was right, and the second factor is missing: it reaches nothing, and ends after 10 minutes"},
	{person.Open, "the person is logged in, for 14 days at most and 12 hours without a request"},
	{person.Ended, "final: its token is worth nothing"},
}

var invitationStates = []meaning[member.Status]{
	{member.Open, "its token can be used for 7 days"},
	{member.Accepted, "final: the invited person is a member"},
	{member.Revoked, "final: the owner has deleted it, or added the person without it"},
	{member.Expired, "nobody used its token in time; it stays listed for 30 days and can be sent again"},
}

var endpointStates = []meaning[webhook.Status]{
	{webhook.Enabled, "gets the events of its databases"},
	{webhook.Disabled, "stays listed and gets nothing, until its secret is rotated"},
}

var deliveryStates = []meaning[webhook.DeliveryStatus]{
	{webhook.Pending, "waits for its next attempt"},
	{webhook.Delivering, "a dispatcher holds it under a lease"},
	{webhook.Delivered, "final: the receiver answered with 2xx in time"},
	{webhook.Failed, "final: no attempt is left, or the endpoint was disabled"},
}

var mailStates = []meaning[mail.Status]{
	{mail.Pending, "waits for its next attempt"},
	{mail.Sending, "a dispatcher holds it under a lease"},
	{mail.Sent, "final: the mail server has accepted it; the token is erased"},
	{mail.Failed, "final: refused for good, or no attempt is left; the token is erased"},
	{mail.Withdrawn, "final: its invitation ended, or got another token; the token is erased"},
}

func TestGoldenStates(t *testing.T) {
	var b strings.Builder
	b.WriteString("# States and transitions\n\n" +
		"Generated from the tables in `core`; `make generate` rewrites this file. A cell is the next state and its\n" +
		"side effects, or the error code of the refusal.\n")
	section(t, &b, "Database", databaseStates, database.Statuses, database.Events, database.Transitions)
	b.WriteString("\nA deleted database keeps its record, and a tombstone beside it, until it is purged.\n")
	section(t, &b, "Storage of a database", storageStates, database.StorageOK.Values(), database.StorageEvents,
		database.StorageTransitions)
	b.WriteString("\nThe percentages are of the account's quota for one database. A database that an operator has\n" +
		"opened is closed again only when it has grown by another 20 % of the quota, until it falls below its quota.\n")
	section(t, &b, "Operation", operationStates, operation.Statuses, operation.Events, operation.Transitions)
	b.WriteString("\nWhile it runs, an operation can be canceled only where its kind has changed nothing in the database yet;\n" +
		"otherwise the answer is `DATABASE_STATE_CONFLICT`. A backup only reads, so it can be canceled until it is complete;\n" +
		"a change of an extension can until it is committed.\n")
	staged(t, &b, "Backup", backupStages, backup.Machine)
	staged(t, &b, "Change of an extension", extensionStages, extension.Machine)
	staged(t, &b, "Restore", restoreStages, restore.Machine)
	b.WriteString("\nThese are the stages of a restore operation. A managed restore continues with `advance`; after an hour\n" +
		"without one a worker cancels it, and 10 s after its switch has begun a worker continues it. Any other restore\n" +
		"always has a worker.\n")
	staged(t, &b, "Clone", cloneStages, clone.Machine)
	b.WriteString("\nThese are the stages of a clone operation, which belongs to the source. The clone's record is `creating`\n" +
		"until its end, and then active or gone. The source is only read.\n")
	staged(t, &b, "Rebuild", rebuildStages, rebuild.Machine)
	b.WriteString("\nThese are the stages of an operation that makes a database of a server that is gone for good anew on\n" +
		"another server. It can be canceled while it is queued only.\n")
	staged(t, &b, "Move", moveStages, move.Machine)
	b.WriteString("\nThese are the stages of an operation that moves a database to another server. It can be canceled until its\n" +
		"parting. A move that is closed begins with keeping customers out, and does not follow.\n")
	staged(t, &b, "Rehearsal", rehearsalStages, rehearsal.Machine)
	b.WriteString("\nThese are the stages of an operation that tries the move of a database to another server on a copy there.\n" +
		"It can be canceled until its end, and nothing of the copy is left however it ends.\n")
	staged(t, &b, "Adoption", adoptionStages, adoption.Machine)
	b.WriteString("\nThese are the stages of an operation that gives a database a record which a server has and the metadata do\n" +
		"not know.\n")
	staged(t, &b, "Rescue, comparison and search", lookStages, recovery.Machine)
	staged(t, &b, "Deletion", deletionStages, deletion.Machine)
	b.WriteString("\nThese are the stages of an operation that deletes a database. A database in `error` that does not exist on\n" +
		"the server is deleted without a backup, and so cannot be recovered.\n")
	staged(t, &b, "Recovery", recoveryStages, deletion.Recovery)
	staged(t, &b, "Purge", purgeStages, deletion.Purge)
	b.WriteString("\nA purge and a recovery exclude each other: a database has one open operation, and a purge begins once the\n" +
		"time of recovery is over.\n")
	section(t, &b, "Preview lease", leaseStates, preview.Leases, preview.Events, preview.Transitions)
	b.WriteString("\nAn operation that fails leaves the database as it was, and its lease ended: the service tries again after\n" +
		"30 s, then after twice as long each time, up to a day.\n")
	section(t, &b, "Additional role", roleStates, role.Statuses, role.Events, role.Transitions)
	b.WriteString("\nThe events from `rotated` on are answers of the agent; the pending change determines which can happen. For\n" +
		"a role that can log in, `delete` begins a revocation, and the removal follows when that is proven.\n")
	b.WriteString("\nThe roles of a database with a single login (legacy roles) have the same machine; where it says\n" +
		"`MANAGED_ROLE_CONFLICT`, they are refused with `LEGACY_ROLE_CONFLICT`.\n")
	section(t, &b, "Overlay of a database with a single login", overlayStates, database.OverlayStatuses, database.OverlayEvents,
		database.OverlayTransitions)
	section(t, &b, "Change of a login", changeStates, role.ChangeStatuses, role.ChangeEvents, role.ChangeTransitions)
	section(t, &b, "Session of a person", sessionStates, person.Statuses, person.Events, person.Transitions)
	b.WriteString("\nA proof gives the session another token. After five misses in a row it ends.\n")
	section(t, &b, "Invitation", invitationStates, member.Statuses, member.Events, member.Transitions)
	section(t, &b, "Webhook endpoint", endpointStates, webhook.Statuses, webhook.Events, webhook.Transitions)
	section(t, &b, "Webhook delivery", deliveryStates, webhook.DeliveryStatuses, webhook.DeliveryEvents, webhook.DeliveryTransitions)
	section(t, &b, "Mail", mailStates, mail.Statuses, mail.Events, mail.Transitions)
	golden(t, "develop/states.md", b.String())
}

// staged is section for the machine of a kind of operations.
func staged(t *testing.T, b *strings.Builder, title string, explained []meaning[stage.Stage], m stage.Machine) {
	t.Helper()
	section(t, b, title, explained, m.Stages, m.Events, m.Table)
}

// section writes a machine's states, and its table: rows are states, columns are events.
func section[S, E ~string](
	t *testing.T, b *strings.Builder, title string, explained []meaning[S], all []S, events []E, table machine.Table[S, E],
) {
	t.Helper()
	if len(explained) != len(all) {
		t.Fatalf("%s: %d states are explained, %d exist", title, len(explained), len(all))
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for i, m := range explained {
		if m.state != all[i] {
			t.Fatalf("%s: state %d is %s, explained is %s", title, i, all[i], m.state)
		}
		fmt.Fprintf(b, "- `%s`: %s.\n", m.state, m.text)
	}
	b.WriteString("\n| state |")
	for _, e := range events {
		fmt.Fprintf(b, " %s |", strings.ReplaceAll(string(e), "_", " "))
	}
	b.WriteString("\n| - |" + strings.Repeat(" - |", len(events)) + "\n")
	for _, s := range all {
		fmt.Fprintf(b, "| `%s` |", s)
		for _, e := range events {
			b.WriteString(" " + cellText(table[s][e]) + " |")
		}
		b.WriteString("\n")
	}
}

func cellText[S ~string](c machine.Cell[S]) string {
	if c.Code != "" {
		return string(c.Code)
	}
	out := "`" + string(c.Next) + "`"
	if len(c.Effects) > 0 {
		out += ": " + strings.Join(c.Effects, ", ")
	}
	return out
}

func TestGoldenErrors(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Error codes\n\n" +
		"Generated from the table in `core/fault`; `make generate` rewrites this file. An answer with one of these codes has\n" +
		"the body `{\"error\": {\"code\", \"message\", \"details\"}}`. A code without a status appears only as `error.code` inside\n" +
		"a failed operation.\n\n| status | code | meaning |\n| - | - | - |\n")
	for _, e := range fault.Table {
		status := "-"
		if e.Status != 0 {
			status = fmt.Sprint(e.Status)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", status, e.Code, e.Meaning)
	}
	golden(t, "use/errors.md", b.String())
}

func TestGoldenDoctor(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What the doctor finds\n\n" +
		"Generated from `core/doctor`; do not edit. `pgherd admin doctor` compares what each server has with the metadata,\n" +
		"prints a line for each difference, and exits with status 1 if there is one. You can run it at any time.\n\n" +
		"`--repair` does what the last column says, writes it into the activity log, and compares again. What could lose data\n" +
		"is never repaired. `--deep` also reads every backup file, and checks every database, one after another: the owner of\n" +
		"the schema `public`, and the rights of the groups there and on what the owner makes later. Rights on existing tables\n" +
		"are not checked.\n\n" +
		"Not compared are objects of an open operation or of a pending change of a login, and additional roles whose set-up\n" +
		"is unfinished. A difference is checked again for `--patience`, and is a finding only if every check shows it. What\n" +
		"customers may do themselves with their own objects is no difference.\n\n" +
		"| code | finding | repair |\n| - | - | - |\n")
	for _, k := range doctor.Kinds {
		repair := string(k.Repair)
		switch {
		case k.Code.Notice():
			repair = "none: customers may do that, so it is a notice, and no difference"
		case k.Repair == doctor.Nothing:
			repair = "-"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Code, k.Says, repair)
	}
	b.WriteString("\n" +
		"An upload, or a companion file without a backup, is removed only when it is older than a day, and an operation is\n" +
		"closed only when its record says that it has ended, or has none and an operator has confirmed that the metadata count.\n")
	golden(t, "operate/doctor.md", b.String())
}
