package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	core "github.com/pgherd/pgherd/core/member"
)

type memberModel struct {
	timed
	memberFacts
}

type memberFacts struct {
	ID         types.String `tfsdk:"id"`
	DatabaseID types.String `tfsdk:"database_id"`
	Email      types.String `tfsdk:"email"`
	Role       types.String `tfsdk:"role"`
	Kind       types.String `tfsdk:"kind"`
}

func (m memberModel) ask() wire.AddMember {
	return wire.AddMember{Email: m.Email.ValueString(), Role: account.Standing(m.Role.ValueString())}
}

func (m memberModel) invited() bool { return m.Kind.ValueString() == wire.KindInvitation }

var member = kind[memberModel]{
	name: "member",
	schema: schema.Schema{
		MarkdownDescription: "Somebody who may use a database beside its owner. Who has no account yet is invited by mail, and stays " +
			"an invitation until it is accepted; one that has ended is sent again by the next apply.",
		Attributes: map[string]schema.Attribute{
			// Both change when an invitation is accepted.
			"id":          schema.StringAttribute{Computed: true, MarkdownDescription: "ID of the membership, or of the invitation."},
			"kind":        schema.StringAttribute{Computed: true, MarkdownDescription: "`member` or `invitation`."},
			"database_id": ofDatabase(),
			"email":       fixed(true, "Mail address, in small letters.", like(account.ValidateEmail)),
			"role": schema.StringAttribute{
				Required: true, MarkdownDescription: "`admin`, `developer` or `viewer`.",
				Validators: []validator.String{like(core.ParseRole)},
			},
		},
	},
	database: func(m memberModel) types.String { return m.DatabaseID },
	made:     func(m memberModel) bool { return m.ID.ValueString() != "" },
	create:   addMember,
	read: func(ctx context.Context, api *apiclient.Client, m *memberModel) error {
		return findMember(ctx, api, databaseID(m.DatabaseID), m.Email.ValueString(), &m.memberFacts)
	},
	update: func(ctx context.Context, api *apiclient.Client, m *memberModel, before memberModel) error {
		if before.invited() {
			return addMember(ctx, api, m) // another role of an invitation is another invitation
		}
		now, err := api.Members.SetRole(ctx, databaseID(m.DatabaseID), id.MembershipID(before.ID.ValueString()),
			wire.SetMemberRole{Role: account.Standing(m.Role.ValueString())})
		if err == nil {
			m.take(string(now.ID), wire.KindMember, now.Role)
		}
		return err
	},
	remove: func(ctx context.Context, api *apiclient.Client, m memberModel) error {
		if m.invited() {
			return api.Members.DeleteInvitation(ctx, databaseID(m.DatabaseID), id.InvitationID(m.ID.ValueString()))
		}
		return api.Members.Remove(ctx, databaseID(m.DatabaseID), id.MembershipID(m.ID.ValueString()))
	},
	find: func(ctx context.Context, api *apiclient.Client, text string, m *memberModel) error {
		of, named, err := parts(ctx, api, text, "DATABASE/MEMBER")
		if err != nil {
			return err
		}
		m.DatabaseID = types.StringValue(string(of))
		return findMember(ctx, api, of, named, &m.memberFacts)
	},
}

func (m *memberFacts) take(of, kind string, role account.Standing) {
	m.ID, m.Kind, m.Role = types.StringValue(of), types.StringValue(kind), types.StringValue(string(role))
}

// isOf fills in the address where it is not known yet: of what is imported by its ID.
func (m *memberFacts) isOf(email string) {
	if m.Email.IsNull() {
		m.Email = types.StringValue(email)
	}
}

func addMember(ctx context.Context, api *apiclient.Client, m *memberModel) error {
	added, err := answered(ctx, func(ctx context.Context) (wire.AddedMember, error) {
		return api.Members.Add(ctx, databaseID(m.DatabaseID), m.ask())
	})
	if err == nil {
		m.take(added.ID, added.Kind, added.Role)
	}
	return err
}

// findMember fills in the membership, or else the open invitation, that has an address or an ID.
func findMember(ctx context.Context, api *apiclient.Client, of id.DatabaseID, named string, m *memberFacts) error {
	all, err := api.Members.List(ctx, of)
	for _, one := range all.Members {
		if strings.EqualFold(one.Email, named) || string(one.ID) == named {
			m.take(string(one.ID), wire.KindMember, one.Role)
			m.isOf(one.Email)
			return nil
		}
	}
	for _, one := range all.Invitations {
		if (strings.EqualFold(one.Email, named) || string(one.ID) == named) && one.Status == "open" {
			m.take(string(one.ID), wire.KindInvitation, one.Role)
			m.isOf(one.Email)
			return nil
		}
	}
	return missing(err)
}
