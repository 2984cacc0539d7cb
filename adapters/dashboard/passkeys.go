package dashboard

import (
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/id"
)

func (s *site) passkeyPages() []web.Page {
	return []web.Page{
		web.Post("security.passkey.add.begin", securityPath+"/passkeys/begin", securityPath, s.beginPasskey),
		web.Post("security.passkey.add", securityPath+"/passkeys", securityPath, s.addPasskey).Says("The passkey was added."),
		web.Post("security.passkey.remove", securityPath+"/passkeys/remove", securityPath, s.removePasskey).
			Says("The passkey was removed."),
	}
}

func (s *site) passkeySection(r *web.Request) (*web.Section, error) {
	list, err := s.use.People.Passkeys(r.Context(), r.Caller)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Your passkeys",
		Columns: []web.Column{{Title: "Name"}, {Title: "Added"}, {Title: "Last used"}, {Title: ""}},
		Empty:   &web.Empty{Text: "No passkey yet. A phone, a computer or a security key can hold one."},
	}
	for _, p := range list {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.Words(p.Name), web.Time(&p.CreatedAt), web.Time(p.UsedAt),
			{Forms: []*web.Form{button("security.passkey.remove", securityPath+"/passkeys/remove", "Remove",
				web.Pair{Name: "passkey", Value: string(p.ID)})}},
		}})
	}
	add := passkeyForm("security.passkey.add", securityPath+"/passkeys", "Add a passkey", nil,
		&web.Field{Name: "name", Label: "Name of the new passkey", Max: 64, Placeholder: "Laptop"})
	add.Passkey, add.Fold = "create", "Add a passkey"
	return &web.Section{
		Title: "Passkeys", Note: "A passkey logs you in by finger, face or PIN, and is both factors at once.", Table: t,
		Forms: []*web.Form{add},
	}, nil
}

func (s *site) beginPasskey(r *web.Request) (web.Answer, error) {
	asked, err := s.use.People.BeginPasskey(r.Context(), r.Caller)
	return ask(asked, err)
}

func (s *site) addPasskey(r *web.Request) (web.Answer, error) {
	_, err := s.use.People.FinishPasskey(r.Context(), r.Caller, r.Field("challenge"), []byte(r.Field("response")), r.Field("name"))
	return web.Redirect{To: securityPath}, unproven(err)
}

func (s *site) removePasskey(r *web.Request) (web.Answer, error) {
	passkey, err := identifier[id.PasskeyID](r, "passkey")
	if err != nil {
		return nil, err
	}
	return web.Redirect{To: securityPath}, s.use.People.RemovePasskey(r.Context(), r.Caller, passkey)
}
