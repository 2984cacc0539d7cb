package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/ports"
)

var (
	membershipTable = tableOf[member.Membership]("memberships")
	invitationTable = tableOf[member.Invitation]("invitations")

	invitationChanges = []string{"role", "token_hash", "status", "expires_at", "ended_at"}
)

// readMembers begins a SELECT of memberships with their people.
var readMembers = membershipTable.read().Columns("u.email", "u.name").Join("users u ON u.id = t.user_id")

var (
	setMember    = define(membershipTable.insert().Suffix("ON CONFLICT (database_id, user_id) DO UPDATE SET role = excluded.role"))
	getMember    = define(readMembers.Where("t.database_id = ? AND t.id = ?"))
	memberOfUser = define(readMembers.Where("t.database_id = ? AND t.user_id = ?"))
	listMembers  = define(readMembers.Where("t.database_id = ?").OrderBy("t.created_at", "t.id"))
	// A key that is being replaced gets another ID, and its bindings with it: a statement that began before would miss them.
	holdKeys = written(`
		SELECT FROM api_keys k JOIN memberships m ON m.user_id = k.user_id WHERE m.id = $1 AND m.database_id = $2
		FOR KEY SHARE OF k`)
	removeMember = written(`
		WITH unbound AS (
			DELETE FROM key_databases b USING memberships m, api_keys k
			WHERE m.id = $1 AND m.database_id = $2 AND b.database_id = $2 AND b.key_id = k.id AND k.user_id = m.user_id)
		DELETE FROM memberships WHERE id = $1 AND database_id = $2`)

	addInvitation     = define(invitationTable.insert())
	getInvitation     = define(invitationTable.read().Where("t.database_id = ? AND t.id = ?"))
	invitationByToken = define(invitationTable.read().Where("t.token_hash = ?"))
	listInvitations   = define(invitationTable.read().Where("t.database_id = ? AND t.status IN ('open', 'expired')").
				OrderBy("t.created_at", "t.id"))
	saveInvitation     = define(invitationTable.update(invitationChanges, "id = ?"))
	overdueInvitations = define(invitationTable.read().Where("t.status = 'open' AND t.expires_at <= ?").
				OrderBy("t.expires_at", "t.id").Suffix("LIMIT ?"))
	forgetInvitations = written(`
		DELETE FROM invitations WHERE id IN (
			SELECT id FROM invitations WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)`)
)

type members struct{ session }

func (m members) Set(ctx context.Context, row member.Membership) error {
	return m.write(ctx, setMember, membershipTable.values(row)...)
}

func (m members) Get(ctx context.Context, db id.DatabaseID, membership id.MembershipID) (member.Member, error) {
	return one[member.Member](ctx, m.session, getMember, db, membership)
}

func (m members) OfUser(ctx context.Context, db id.DatabaseID, user id.UserID) (member.Member, error) {
	return one[member.Member](ctx, m.session, memberOfUser, db, user)
}

func (m members) List(ctx context.Context, db id.DatabaseID) ([]member.Member, error) {
	return all[member.Member](ctx, m.session, listMembers, db)
}

func (m members) Remove(ctx context.Context, row member.Membership) error {
	if err := m.write(ctx, holdKeys, row.ID, row.DatabaseID); err != nil {
		return err
	}
	return m.mustChange(ctx, ports.ErrNoRow, removeMember, row.ID, row.DatabaseID)
}

type invitations struct{ session }

func (i invitations) Add(ctx context.Context, row member.Invitation) error {
	return i.write(ctx, addInvitation, invitationTable.values(row)...)
}

func (i invitations) Get(ctx context.Context, db id.DatabaseID, invitation id.InvitationID) (member.Invitation, error) {
	return one[member.Invitation](ctx, i.session, getInvitation, db, invitation)
}

func (i invitations) ByToken(ctx context.Context, token member.Hash) (member.Invitation, error) {
	return one[member.Invitation](ctx, i.session, invitationByToken, token[:])
}

func (i invitations) List(ctx context.Context, db id.DatabaseID) ([]member.Invitation, error) {
	return all[member.Invitation](ctx, i.session, listInvitations, db)
}

func (i invitations) Save(ctx context.Context, row member.Invitation) error {
	return i.mustChange(ctx, ports.ErrNoRow, saveInvitation, append(valuesOf(row, invitationChanges), row.ID)...)
}

func (i invitations) Overdue(ctx context.Context, now time.Time, limit int) ([]member.Invitation, error) {
	return all[member.Invitation](ctx, i.session, overdueInvitations, now, limit)
}

func (i invitations) Forget(ctx context.Context, before time.Time, limit int) error {
	return i.write(ctx, forgetInvitations, before, limit)
}
