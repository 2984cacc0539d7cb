package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slowquery"
	"github.com/pgherd/pgherd/ports"
)

func statementsCounted(t *testing.T, s Stand) {
	db, _ := made(t, s)
	other, _ := made(t, s)
	for _, sql := range []string{
		"CREATE TABLE counted (a text);", "INSERT INTO counted VALUES ('a');", "INSERT INTO counted VALUES ('b');",
	} {
		if !s.Server.Load(db.Name, sql) {
			t.Fatal(sql)
		}
	}
	for _, o := range slowquery.Orders {
		list := must(ports.Ask(bounded(t), s.Agent, command.SlowQueries{DatabaseID: db.DatabaseID, Order: o}))(t)
		if !list.Collected || list.Since.IsZero() || list.Since.After(time.Now()) || len(list.Statements) != 2 {
			t.Fatalf("by %s: %+v", o, list)
		}
		for _, one := range list.Statements {
			calls, text := int64(1), "CREATE TABLE counted (a text)"
			if strings.HasPrefix(one.Text, "INSERT") {
				calls, text = 2, "INSERT INTO counted VALUES ($1)"
			}
			if one.Text != text || one.Calls != calls || one.Username != db.Logins[0].Username || one.ID == "" ||
				one.TotalMs <= 0 || one.MaxMs < one.MeanMs {
				t.Errorf("by %s: %+v", o, one)
			}
		}
		if o == slowquery.ByCalls && list.Statements[0].Calls != 2 {
			t.Errorf("by %s: %+v", o, list.Statements)
		}
	}
	q := command.SlowQueries{DatabaseID: other.DatabaseID, Order: slowquery.ByTotal}
	if list := must(ports.Ask(bounded(t), s.Agent, q))(t); len(list.Statements) != 0 {
		t.Errorf("another database has %+v", list.Statements)
	}
	if !must(ports.Ask(bounded(t), s.Agent, command.AskCapabilities{}))(t).SlowQueries {
		t.Error("the agent does not say that statements are counted")
	}
}

func statementsOfNothing(t *testing.T, s Stand) {
	q := command.SlowQueries{DatabaseID: newID[id.DatabaseID](), Order: slowquery.ByTotal}
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, q)), command.ReasonNotFound)
}
