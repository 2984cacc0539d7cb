package dashboard

import (
	"strconv"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

const webhooksPath = "/webhooks"

func (s *site) webhookPages() []web.Page {
	const one = webhooksPath + "/{id}"
	return []web.Page{
		web.Get("webhooks", webhooksPath, s.showWebhooks, "listWebhooks"),
		web.Post("webhook.create", webhooksPath, webhooksPath, s.createWebhook, "createWebhook"),
		web.Get("webhook", one, s.showWebhook, "listDeliveryAttempts"),
		web.Post("webhook.rotate", one+"/rotate", one, s.rotateWebhook, "rotateWebhookSecret"),
		web.Post("webhook.test", one+"/test", one, s.testWebhook, "testWebhook").Says("A test event is queued."),
		web.Post("webhook.disable", one+"/disable", one, s.disableWebhook, "disableWebhook").Says("The endpoint is disabled."),
		web.Post("webhook.redeliver", one+"/deliveries/{delivery}/redeliver", one, s.redeliver, "redeliverEvent").
			Says("The event is queued once more."),
	}
}

func (s *site) showWebhooks(r *web.Request) (web.Answer, error) {
	list, _, err := s.use.Webhooks.List(r.Context(), r.Caller, ports.Page{})
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Endpoints",
		Columns: []web.Column{
			{Title: "Address", Sort: "address"}, {Title: "Status", Sort: "status"},
			{Title: "Failures in a row", Number: true, Sort: "failures"},
			{Title: "Made", Sort: "made"},
		},
		Empty: &web.Empty{Text: "No endpoint yet. An endpoint is sent a signed event when an operation ends.",
			Command: "svc webhooks create https://hooks.example.com/pg"},
	}
	for _, e := range list {
		made := web.Time(&e.What.CreatedAt)
		if e.Person != nil {
			made.Sub = e.Person.Name
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: e.What.URL, Href: webhooksPath + "/" + string(e.What.ID), Mono: true}, {Mark: endpointMark(e.What)},
			{Text: strconv.Itoa(e.What.ConsecutiveFailures), Key: int64(e.What.ConsecutiveFailures)}, made,
		}})
	}
	databases, _, err := s.use.Databases.List(r.Context(), r.Caller, ports.Page{Limit: mostChoices})
	if err != nil {
		return nil, err
	}
	choices := []web.Option{{Text: "all databases"}}
	for _, d := range databases {
		if d.AccountID == r.Caller.Account.ID {
			choices = append(choices, web.Option{Value: string(d.ID), Text: d.DisplayName})
		}
	}
	return &web.View{Title: "Webhooks", Sections: []*web.Section{{ID: "webhooks", Table: t.Arrange(r), Forms: []*web.Form{{
		Name: "webhook.create", Action: webhooksPath, Submit: "Add the endpoint", Fold: "New endpoint",
		Fields: []*web.Field{
			{Name: "url", Label: "Address", Type: "url", Max: 2000, Placeholder: "https://hooks.example.com/pg",
				Help: "https, of a public host."},
			{Name: "database", Label: "Events of", Type: "select", Options: choices},
		},
	}}}}}, nil
}

func endpointMark(e webhook.Endpoint) *web.Mark {
	if e.DisabledAt != nil {
		return &web.Mark{Text: "disabled", Tone: web.Neutral}
	}
	if e.ConsecutiveFailures > 0 {
		return &web.Mark{Text: "failing", Tone: web.Warning}
	}
	return &web.Mark{Text: "enabled", Tone: web.Good}
}

func (s *site) createWebhook(r *web.Request) (web.Answer, error) {
	var of *id.DatabaseID
	if r.Field("database") != "" {
		db, err := identifier[id.DatabaseID](r, "database")
		if err != nil {
			return nil, err
		}
		of = &db
	}
	made, err := s.use.Webhooks.Create(r.Context(), r.Caller, r.Field("url"), of)
	if err != nil {
		return nil, err
	}
	return secretView(made), nil
}

func secretView(made webhooks.SecretEndpoint) *web.View {
	return &web.View{
		Title: "Signing secret", Trail: []web.Link{{Text: "Webhooks", Href: webhooksPath}},
		Sections: []*web.Section{{
			Note:  "The receiver verifies events with it. It is shown this once.",
			Codes: []web.Code{{Label: made.Endpoint.URL, Text: made.Secret, Secret: true}},
			Links: []web.Link{{Text: "I have kept it", Href: webhooksPath + "/" + string(made.Endpoint.ID)}},
		}},
	}
}

// endpoint is the endpoint of a page, and who made it.
func (s *site) endpoint(r *web.Request) (webhooks.Reached, webhook.Endpoint, error) {
	reached, err := s.use.Webhooks.Reach(r.Context(), r.Caller, id.WebhookID(r.Param("id")))
	return reached, reached.Endpoint(), err
}

func (s *site) showWebhook(r *web.Request) (web.Answer, error) {
	reached, e, err := s.endpoint(r)
	if err != nil {
		return nil, err
	}
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	attempts, next, err := s.use.Webhooks.Attempts(r.Context(), reached, page)
	if err != nil {
		return nil, err
	}
	at := webhooksPath + "/" + string(e.ID)
	t := &web.Table{
		Caption: "Attempts, the latest first",
		Columns: []web.Column{{Title: "When"}, {Title: "Event"}, {Title: "Delivery"}, {Title: "Answer"}, {Title: "Next"}, {Title: ""}},
		Empty:   &web.Empty{Text: "Nothing was sent yet."},
	}
	for _, a := range attempts {
		answer := web.Words("no answer")
		if a.StatusCode > 0 {
			answer.Text = strconv.Itoa(a.StatusCode)
		}
		answer.Sub = a.Error
		last := web.Cell{}
		if e.DisabledAt == nil && a.Status != webhook.Pending {
			last.Forms = []*web.Form{button("webhook.redeliver", at+"/deliveries/"+string(a.DeliveryID)+"/redeliver", "Send again")}
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.Time(&a.At), web.MonoText(string(a.Event)),
			{Mark: deliveryMark(a.Status), Sub: "attempt " + strconv.Itoa(a.Number)}, answer,
			web.Time(a.NextAttempt), last,
		}})
	}
	turned(t, at, page, next)
	about := &web.Section{ID: "endpoint", Facts: []web.Fact{
		{Name: "Status", Cell: web.Cell{Mark: endpointMark(e)}},
		{Name: "Failures in a row", Cell: web.Words(strconv.Itoa(e.ConsecutiveFailures))},
		{Name: "Made", Cell: web.Time(&e.CreatedAt)}, {Name: "Changed", Cell: web.Time(&e.UpdatedAt)},
	}}
	rotate := &web.Form{
		Name: "webhook.rotate", Action: at + "/rotate", Submit: "Make a new secret", Fold: "Rotate the secret",
		Intro: "The old secret is used no more, not even for retries. A disabled endpoint is enabled again.",
	}
	if e.DisabledAt == nil {
		about.Forms = append(about.Forms, button("webhook.test", at+"/test", "Send a test event"))
	}
	about.Forms = append(about.Forms, rotate)
	if e.DisabledAt == nil {
		about.Forms = append(about.Forms, &web.Form{
			Name: "webhook.disable", Action: at + "/disable", Submit: "Disable the endpoint", Fold: "Disable it", Danger: true,
			Intro: "Nothing more is sent, and what waits is given up.",
		})
	}
	return &web.View{
		Title: e.URL, Trail: []web.Link{{Text: "Webhooks", Href: webhooksPath}},
		Sections: []*web.Section{about, {ID: "attempts", Title: "Deliveries", Table: t}},
	}, nil
}

func deliveryMark(s webhook.DeliveryStatus) *web.Mark {
	tone := web.Bad
	switch s { //nolint:exhaustive // all others are failures
	case webhook.Pending:
		tone = web.Busy
	case webhook.Delivered:
		tone = web.Good
	}
	return &web.Mark{Text: plain(s), Tone: tone}
}

func (s *site) rotateWebhook(r *web.Request) (web.Answer, error) {
	reached, _, err := s.endpoint(r)
	if err != nil {
		return nil, err
	}
	made, err := s.use.Webhooks.Rotate(r.Context(), reached)
	if err != nil {
		return nil, err
	}
	return secretView(made), nil
}

func backToWebhook(r *web.Request) web.Answer {
	return web.Redirect{To: webhooksPath + "/" + r.Param("id")}
}

func (s *site) testWebhook(r *web.Request) (web.Answer, error) {
	reached, _, err := s.endpoint(r)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Webhooks.Test(r.Context(), reached)
	return backToWebhook(r), err
}

func (s *site) disableWebhook(r *web.Request) (web.Answer, error) {
	reached, _, err := s.endpoint(r)
	if err != nil {
		return nil, err
	}
	return backToWebhook(r), s.use.Webhooks.Disable(r.Context(), reached)
}

func (s *site) redeliver(r *web.Request) (web.Answer, error) {
	reached, _, err := s.endpoint(r)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Webhooks.Redeliver(r.Context(), reached, id.DeliveryID(r.Param("delivery")))
	return backToWebhook(r), err
}
