package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// beat is one change, and whether pages show it.
type beat struct {
	what  string
	shown bool
	do    transaction
}

// A pulse is another one after each change that pages show, and that of no other database is.
func pulsesBeat(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	r, other := w.addDatabase("shop"), w.addDatabase("other", func(r *database.Record) { r.AccountID = theirs.ID })
	list := []id.DatabaseID{r.ID, other.ID, newID[id.DatabaseID]()}
	pulses := func() map[id.DatabaseID]string { return read(w, ports.Tx.Databases, ports.Databases.Pulses, list) }
	before := pulses()
	if n := len(before); n != 2 {
		w.Errorf("%d pulses of two databases", n)
	}
	w.equal("none", read(w, ports.Tx.Databases, ports.Databases.Pulses, nil), map[id.DatabaseID]string{})
	last := before[r.ID]
	for _, b := range slices.Concat(recordBeats(w, &r), workBeats(w, r), accessBeats(w, r), endBeats(w, r)) {
		w.update(b.do)
		now := pulses()
		w.equal("another database's after "+b.what, now[other.ID], before[other.ID])
		w.equal("another one after "+b.what, now[r.ID] != last, b.shown)
		w.equal("read again after "+b.what, pulses(), now)
		last = now[r.ID]
	}
	w.update(inOrder(
		writing2(ports.Tx.Backups, ports.Backups.Remove, r.ID, backup.FilenameAt(minutes(1))),
		writing2(ports.Tx.Backups, ports.Backups.Remove, r.ID, backup.FilenameAt(minutes(2))),
		writing(ports.Tx.Databases, ports.Databases.Remove, r.ID)))
	w.equal("what is left", slices.Collect(maps.Keys(pulses())), []id.DatabaseID{other.ID})
}

func recordBeats(w *world, r *database.Record) (list []beat) {
	for _, c := range []struct {
		what   string
		shown  bool
		change func()
	}{
		{"its display name", true, func() { r.DisplayName = "Another" }},
		{"its status", true, func() { r.Status = database.Stopped }},
		{"its environment", true, func() { r.Environment = database.Other }},
		{"its schedule", true, func() { r.Schedule = database.Daily }},
		{"its next backup", true, func() { r.NextBackupAt = new(minutes(60)) }},
		{"its size", true, func() { r.SizeBytes = 1 << 40 }},
		{"its quota's state", true, func() { r.StorageStatus = database.StorageFull }},
		{"a generation", true, func() { r.AllowlistGeneration++ }},
		{"an applied generation", true, func() { r.AllowlistApplied++ }},
		{"settings", true, func() { r.SettingsGeneration++ }},
		{"applied settings", true, func() { r.SettingsApplied++ }},
		{"access", true, func() { r.AccessGeneration++ }},
		{"a first look at its size", false, func() { r.SizedAt = new(minutes(1)) }},
		{"a second one", false, func() { r.SizedAt = new(minutes(2)) }},
		{"its next reading", false, func() { r.NextReadingAt = minutes(3) }},
	} {
		list = append(list, beat{c.what, c.shown, func(ctx context.Context, tx ports.Tx) error {
			c.change()
			return tx.Databases().Save(ctx, *r)
		}})
	}
	quota := w.account
	quota.DatabaseBytes = new(int64(1 << 30))
	return append(list, beat{"the account's quota", true, writing(ports.Tx.Accounts, ports.Accounts.Save, quota)})
}

func workBeats(w *world, r database.Record) []beat {
	o := w.work(r.ID).Claimed("worker-1", epoch, time.Minute)
	saved := func(change func()) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			change()
			return tx.Operations().SaveLeased(ctx, o)
		}
	}
	logins, short := w.work(r.ID), ended(w.work(r.ID), operation.Failed)
	logins.Kind, logins.Logins, short.CreatedAt = "role-change", true, minutes(3)
	verified := w.backupOf(r.ID, minutes(2))
	verified.VerifiedAt = new(minutes(2))
	late := w.entry(r.ID, 0)
	late.At = late.At.Add(-time.Second)
	return []beat{
		{"an operation", true, writing(ports.Tx.Operations, ports.Operations.Add, o)},
		{"its stage", true, saved(func() { o.Stage = "dump" })},
		{"its progress", true, saved(func() { o.Progress = 1 })},
		{"its bytes", true, saved(func() { o.BytesDone = 1 })},
		{"what they are of", true, saved(func() { o.BytesTotal = 9 })},
		{"its lease", false, saved(func() { o.Until = new(minutes(2)) })},
		{"its cancellation", true, saved(func() { o.CancelRequested = true })},
		{"an operation beside it", true, writing(ports.Tx.Operations, ports.Operations.Add, logins)},
		{"its end", true, saved(func() { o = ended(o, operation.Canceled) })},
		{"one that has ended", true, writing(ports.Tx.Operations, ports.Operations.Add, short)},
		{"an activity entry", true, writing(ports.Tx.Audit, ports.Audit.Add, w.entry(r.ID, 0))},
		{"an earlier one that came later", true, writing(ports.Tx.Audit, ports.Audit.Add, late)},
		{"a backup", true, writing(ports.Tx.Backups, ports.Backups.Add, w.backupOf(r.ID, minutes(1)))},
		{"a verified one", true, writing(ports.Tx.Backups, ports.Backups.Add, verified)},
	}
}

func accessBeats(w *world, r database.Record) []beat {
	reserved := roleOf(r.ID, 1)
	reserved.Status = role.Reserved
	renamed, rotated := in(role.Ready, reserved), in(role.Ready, reserved)
	renamed.DisplayName, rotated.DisplayName, rotated.CredentialGeneration = "Another", "Another", 3
	c := changeOf(r.ID)
	stuck := c
	stuck.Refusal = "no"
	bob, _ := w.addAccount("carol@example.com")
	m := member.Membership{ID: newID[id.MembershipID](), DatabaseID: r.ID, UserID: bob.ID, Role: account.Viewer, CreatedAt: epoch}
	admin := m
	admin.Role = account.Admin
	i := w.invitation(r.ID, "dan@example.com")
	again, over, revoked := i, i, i
	again.ExpiresAt = again.ExpiresAt.Add(time.Hour)
	endedAs(member.Expired, 1)(&over)
	endedAs(member.Revoked, 2)(&revoked)
	return []beat{
		{"a role", true, addingRole(reserved)},
		{"that is ready", true, savingRole(in(role.Ready, reserved))},
		{"its name", true, savingRole(renamed)},
		{"its password", true, savingRole(rotated)},
		{"its revocation", true, savingRole(in(role.Revoked, rotated))},
		{"its removal", true, savingRole(in(role.Removed, rotated))},
		{"a change of a login", true, addingChange(c)},
		{"that is refused", true, savingChange(stuck)},
		{"its end", true, savingChange(stuck.Ended(role.Completed, minutes(5)))},
		{"a member", true, writing(ports.Tx.Members, ports.Members.Set, m)},
		{"the member's role", true, writing(ports.Tx.Members, ports.Members.Set, admin)},
		{"the member's removal", true, writing(ports.Tx.Members, ports.Members.Remove, m)},
		{"an invitation", true, writing(ports.Tx.Invitations, ports.Invitations.Add, i)},
		{"that is sent again", true, writing(ports.Tx.Invitations, ports.Invitations.Save, again)},
		{"that expires", true, writing(ports.Tx.Invitations, ports.Invitations.Save, over)},
		{"that is revoked", true, writing(ports.Tx.Invitations, ports.Invitations.Save, revoked)},
	}
}

func endBeats(w *world, r database.Record) []beat {
	p := w.previewOf(r.ID, w.namespaceOf(w.account, "web"), "main", 1)
	longer, deleting := p, p
	longer.ExpiresAt = minutes(90)
	deleting.Lease = preview.Deleting
	buried := func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Deletions().Add(ctx, tombstoneOf(r.ID, 1))
		return err
	}
	return []beat{
		{"its lease as a preview", true, writing(ports.Tx.Previews, ports.Previews.Add, p)},
		{"a longer one", true, writing(ports.Tx.Previews, ports.Previews.Save, longer)},
		{"its end", true, writing(ports.Tx.Previews, ports.Previews.Save, deleting)},
		{"a tombstone", true, buried},
		{"its recovery", true, writing2(ports.Tx.Deletions, ports.Deletions.SetRecovery, r.ID, newID[id.OperationID]())},
	}
}
