package dashboard

import (
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/keyring"
)

func (s *site) ringPages() []web.Page {
	return []web.Page{web.Get("operator.keyring", consolePath+ringTab, s.look(s.showRing))}
}

func (s *site) showRing(r *web.Request, o *operator.Operator) (web.Answer, error) {
	known, err := o.Ring.Known(r.Context())
	if err != nil {
		return nil, err
	}
	hosts, err := o.Ring.Hosts(r.Context())
	if err != nil {
		return nil, err
	}
	keys := &web.Table{
		Caption: "Keys that stored secrets are encrypted with, by their fingerprints",
		Columns: []web.Column{{Title: "Key"}, {Title: "Status"}, {Title: "Since"}, {Title: "All encrypted again"}},
		Empty:   &web.Empty{Text: "No key is known yet."},
	}
	for _, k := range known {
		tone := web.Neutral
		switch k.Status {
		case keyring.Primary:
			tone = web.Good
		case keyring.Staged:
			tone = web.Busy
		case keyring.Old, keyring.Retired:
		}
		keys.Rows = append(keys.Rows, web.Row{Cells: []web.Cell{
			web.MonoText(string(k.Fingerprint)), {Mark: &web.Mark{Text: string(k.Status), Tone: tone}}, web.Time(&k.Since),
			web.Time(k.ResealedAt),
		}})
	}
	primary, _ := known.Primary()
	staged, isStaged := known.Staged()
	at := &web.Table{
		Caption: "Hosts of the control plane, with the keys that they have",
		Columns: []web.Column{{Title: "Host"}, {Title: "Heard from"}, {Title: "Primary key"}, {Title: "Staged key"}},
		Empty:   &web.Empty{Text: "No host runs."},
	}
	for _, h := range hosts {
		next := web.Words("–")
		if isStaged {
			next = hasCell(h.Has(staged.Fingerprint))
		}
		at.Rows = append(at.Rows, web.Row{Cells: []web.Cell{
			web.MonoText(h.Name), web.Time(&h.SeenAt), hasCell(h.Has(primary.Fingerprint)), next,
		}})
	}
	v := console(ringTab, "Key ring")
	v.Lead = "Keys are in files, and are changed where these are: pgherd admin secrets rotate."
	v.Sections = []*web.Section{{ID: "keys", Title: "Keys", Table: keys}, {ID: "hosts", Title: "Hosts", Table: at}}
	return v, nil
}

func hasCell(has bool) web.Cell {
	if has {
		return web.Cell{Mark: &web.Mark{Text: "there", Tone: web.Good}}
	}
	return web.Cell{Mark: &web.Mark{Text: "missing", Tone: web.Bad}}
}
