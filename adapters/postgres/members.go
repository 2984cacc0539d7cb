package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

var (
	membershipTable = pgdb.TableOf[member.Membership]("memberships").
			Added("ON CONFLICT (database_id, user_id) DO UPDATE SET role = excluded.role")
	invitationTable = pgdb.TableOf[member.Invitation]("invitations").Added().
			Saved([]string{"id"}, []string{"role", "token_hash", "status", "expires_at", "ended_at"})
)

// readMembers begins a SELECT of memberships with their people.
var readMembers = membershipTable.Read().Columns("u.email", "u.name").Join("users u ON u.id = t.user_id")

var (
	getMember    = pgdb.Define(readMembers.Where("t.database_id = ? AND t.id = ?"))
	memberOfUser = pgdb.Define(readMembers.Where("t.database_id = ? AND t.user_id = ?"))
	listMembers  = pgdb.Define(readMembers.Where("t.database_id = ?").OrderBy("t.created_at", "t.id"))
	// A key that is being replaced gets another ID, and its bindings with it: a statement that began before would miss them.
	holdKeys = pgdb.Written(`
		SELECT FROM api_keys k JOIN memberships m ON m.user_id = k.user_id WHERE m.id = $1 AND m.database_id = $2
		FOR KEY SHARE OF k`)
	removeMember = pgdb.Written(`
		WITH unbound AS (
			DELETE FROM key_databases b USING memberships m, api_keys k
			WHERE m.id = $1 AND m.database_id = $2 AND b.database_id = $2 AND b.key_id = k.id AND k.user_id = m.user_id)
		DELETE FROM memberships WHERE id = $1 AND database_id = $2`)

	getInvitation     = pgdb.Define(invitationTable.Read().Where("t.database_id = ? AND t.id = ?"))
	invitationByToken = pgdb.Define(invitationTable.Read().Where("t.token_hash = ?"))
	listInvitations   = pgdb.Define(invitationTable.Read().Where("t.database_id = ? AND t.status IN ('open', 'expired')").
				OrderBy("t.created_at", "t.id"))
	overdueInvitations = pgdb.Define(invitationTable.Read().Where("t.status = 'open' AND t.expires_at <= ?").
				OrderBy("t.expires_at", "t.id").Suffix("LIMIT ?"))
	forgetInvitations = pgdb.Written(`
		DELETE FROM invitations WHERE id IN (
			SELECT id FROM invitations WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)`)
)

type members struct{ pgdb.Session }

func (m members) Set(ctx context.Context, row member.Membership) error {
	return membershipTable.Add(ctx, m.Session, row)
}

func (m members) Get(ctx context.Context, db id.DatabaseID, membership id.MembershipID) (member.Member, error) {
	return pgdb.One[member.Member](ctx, m.Session, getMember, db, membership)
}

func (m members) OfUser(ctx context.Context, db id.DatabaseID, user id.UserID) (member.Member, error) {
	return pgdb.One[member.Member](ctx, m.Session, memberOfUser, db, user)
}

func (m members) List(ctx context.Context, db id.DatabaseID) ([]member.Member, error) {
	return pgdb.All[member.Member](ctx, m.Session, listMembers, db)
}

func (m members) Remove(ctx context.Context, row member.Membership) error {
	if err := m.Write(ctx, holdKeys, row.ID, row.DatabaseID); err != nil {
		return err
	}
	return m.MustChange(ctx, ports.ErrNoRow, removeMember, row.ID, row.DatabaseID)
}

type invitations struct{ pgdb.Rows[member.Invitation] }

func (i invitations) Get(ctx context.Context, db id.DatabaseID, invitation id.InvitationID) (member.Invitation, error) {
	return i.One(ctx, getInvitation, db, invitation)
}

func (i invitations) ByToken(ctx context.Context, hash token.Hash) (member.Invitation, error) {
	return i.One(ctx, invitationByToken, hash[:])
}

func (i invitations) List(ctx context.Context, db id.DatabaseID) ([]member.Invitation, error) {
	return i.All(ctx, listInvitations, db)
}

func (i invitations) Overdue(ctx context.Context, now time.Time, limit int) ([]member.Invitation, error) {
	return i.All(ctx, overdueInvitations, now, limit)
}

func (i invitations) Forget(ctx context.Context, before time.Time, limit int) error {
	return i.Write(ctx, forgetInvitations, before, limit)
}
