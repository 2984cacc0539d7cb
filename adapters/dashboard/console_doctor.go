package dashboard

import (
	"context"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
)

const (
	patientsPath = consolePath + doctorTab
	patientPath  = patientsPath + "/{id}"
)

func (s *site) doctorPages() []web.Page {
	return []web.Page{
		web.Get("operator.doctor", patientsPath, s.look(s.showPatients)),
		web.Get("operator.patient", patientPath, s.look(s.examine)),
		web.Post("operator.patient.repair", patientPath+"/repair", patientsPath, s.repair),
		web.Post("operator.patient.confirm", patientPath+"/confirm", patientPath, s.confirmMetadata).
			Says("The metadata count on the server."),
	}
}

func pathOfPatient(of id.ServerID) string { return patientsPath + "/" + string(of) }

func (s *site) showPatients(r *web.Request, o *operator.Operator) (web.Answer, error) {
	list, err := o.Patients(r.Context())
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Servers to examine", Columns: []web.Column{{Title: "Server"}, {Title: "State"}, {Title: "Last answer"}},
		Empty: &web.Empty{Text: "There is no server yet."},
	}
	for _, one := range list {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: "Examine " + one.Name, Href: pathOfPatient(one.ID)}, {Mark: serverMark(r, one)}, web.Time(one.AnsweredAt),
		}})
	}
	v := console(doctorTab, "Doctor")
	v.Lead = "Compares what a server has with the metadata. What differs is looked at again, which takes some seconds."
	v.Sections = []*web.Section{{ID: "servers", Table: t}}
	return v, nil
}

// glance is how long a page looks at a difference again: less than the command does, so that it comes while somebody waits.
const glance = 5 * time.Second

func (s *site) examine(r *web.Request, o *operator.Operator) (web.Answer, error) {
	one, _, err := o.Server(r.Context(), id.ServerID(r.Param("id")))
	if err != nil {
		return nil, found(err)
	}
	list, err := o.Examine(r.Context(), one, checkups.Options{Patience: glance})
	if err != nil {
		return nil, err
	}
	v := below(doctorTab, "Doctor", one.Name)
	section := diagnoses(list)
	v.Sections = []*web.Section{section}
	repairs := 0
	for _, d := range list {
		if d.Repair() != doctor.Nothing {
			repairs++
		}
	}
	if repairs > 0 {
		section.Forms = []*web.Form{{
			Name: "operator.patient.repair", Action: pathOfPatient(one.ID) + "/repair", Submit: "Repair", Danger: true,
			Fold:   fmt.Sprintf("Repair what can be repaired (%d)", repairs),
			Intro:  "What each line says is done; nothing that could lose data ever is. It takes up to half a minute.",
			Fields: []*web.Field{reasonField()},
		}}
	}
	lacking, err := o.Lacking(r.Context(), one)
	if err == nil && len(lacking) > 0 {
		v.Sections = append(v.Sections, lackingSection(one, lacking))
	}
	return v, nil // a server that does not say what it has heard of is a finding
}

func diagnoses(list []checkups.Diagnosis) *web.Section {
	t := &web.Table{
		Caption: "What differs",
		Columns: []web.Column{{Title: "What"}, {Title: "Kind"}, {Title: "Database"}, {Title: "Repair"}, {Title: "Outcome"}},
		Empty:   &web.Empty{Text: "Nothing differs."},
	}
	for _, d := range list {
		kind, repair, outcome := &web.Mark{Text: plain(d.Code), Tone: web.Bad}, "none", web.Words("–")
		if d.Code.Notice() {
			kind.Tone = web.Warning
		}
		if to := d.Repair(); to != doctor.Nothing {
			repair = string(to)
		}
		switch {
		case d.Repaired:
			outcome = web.Cell{Mark: &web.Mark{Text: "repaired", Tone: web.Good}}
		case d.Failed != nil:
			outcome = web.Cell{Mark: &web.Mark{Text: "not repaired", Tone: web.Bad}, Sub: d.Failed.Error()}
		}
		about := web.Words("–")
		if d.DatabaseID != "" {
			about = web.Cell{Text: string(d.DatabaseID), Href: pathOfRecord(d.DatabaseID), Mono: true}
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{web.Words(d.String()), {Mark: kind}, about, web.Words(repair), outcome}})
	}
	return &web.Section{Table: t}
}

func (s *site) repair(r *web.Request) (web.Answer, error) {
	var one server.Server
	var list []checkups.Diagnosis
	err := s.order(r, func(ctx context.Context, o *operator.Operator, _ operation.Order) (err error) {
		if one, _, err = o.Server(ctx, id.ServerID(r.Param("id"))); err != nil {
			return found(err)
		}
		list, err = o.Examine(ctx, one, checkups.Options{Repair: true})
		return err
	})
	if err != nil {
		return nil, err
	}
	v := below(doctorTab, "Doctor", one.Name)
	section := diagnoses(list)
	section.Links = []web.Link{{Text: "Examine it again", Href: pathOfPatient(one.ID)}}
	v.Sections = []*web.Section{section}
	return v, nil
}

// lackingSection is about metadata that went back in time: after a restore, say.
func lackingSection(of server.Server, lacking []id.OperationID) *web.Section {
	return &web.Section{
		Title: "The metadata are behind",
		Note: fmt.Sprintf("The server has heard of %d operations that the metadata lack, as after a restore of the metadata or a "+
			"failover; the first is %s. Until it is confirmed that the metadata count, nothing ends by time, on any server. Look at each "+
			"difference before: what the metadata say is deleted goes when its time is over.", len(lacking), lacking[0]),
		Forms: []*web.Form{{
			Name: "operator.patient.confirm", Action: pathOfPatient(of.ID) + "/confirm", Submit: "The metadata count", Danger: true,
			Fold: "Confirm that the metadata count", Fields: []*web.Field{web.Typed(of.Name), reasonField()},
		}},
	}
}

func (s *site) confirmMetadata(r *web.Request) (web.Answer, error) {
	of := id.ServerID(r.Param("id"))
	return s.ordered(r, pathOfPatient(of), func(ctx context.Context, o *operator.Operator, by operation.Order) error {
		one, _, err := o.Server(ctx, of)
		if err != nil {
			return found(err)
		}
		if err := r.Confirm(one.Name); err != nil {
			return err
		}
		return o.ConfirmMetadata(ctx, one, by)
	})
}
