package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// Routes is the one table of the API's routes (spec, section "Endpoints"); the rows about logins stand in roleroutes.go.
func Routes(uc *controlplane.ControlPlane) []Route {
	d, a, b := databases{uc.Databases}, allowlist{uc.Allowlist}, backups{uc.Backups}
	o, l, w := operations{uc.Operations}, activity{uc.Activity}, webhooks{uc.Webhooks}
	const (
		list    = keyed + "/databases"
		one     = list + "/{id}"
		network = one + "/network/allowlist"
		files   = one + "/backups"
		file    = files + "/{filename}"
		work    = keyed + "/operations/{id}"
		hooks   = keyed + "/webhooks"
		hook    = hooks + "/{id}"
		sent    = hook + "/deliveries"
	)
	return append([]Route{
		{
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, List: WholeList, Handle: d.list,
			Summary: "The databases that the key sees", Answers: documented(http.StatusOK, wire.Page[wire.Database]{}),
		},
		{
			Method: http.MethodPost, Path: list, Class: ratelimit.Create, Key: FullAccount, PlanRefusal: planLimit,
			Body: JSON[wire.CreateDatabase](), Idempotency: Optional, NoStore: true, Handle: d.create,
			Summary: "Make a database", Answers: documented(http.StatusCreated, wire.CreatedDatabase{}),
		},
		{
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Target: Database, Action: account.See, Handle: d.get,
			Summary: "One database", Answers: documented(http.StatusOK, wire.Database{}),
		},
		{
			Method: http.MethodPatch, Path: one + "/environment", Class: ratelimit.Write,
			Target: Database, Action: account.Configure, Body: JSON[wire.SetEnvironment](), Handle: d.setEnvironment,
			Summary: "Change the environment label", Answers: documented(http.StatusOK, wire.DataWithMessage[wire.DatabaseEnvironment]{}),
		},
		{
			Method: http.MethodPost, Path: one + "/lifecycle", Class: ratelimit.Write,
			Target: Database, Action: account.Configure, Body: JSON[wire.SetLifecycle](), Handle: d.setLifecycle,
			Summary: "Start, stop or restart a database", Answers: documented(http.StatusOK, wire.DataWithMessage[wire.DatabaseStatus]{}),
		},
		{
			Method: http.MethodGet, Path: network, Class: ratelimit.Read, Target: Database, Action: account.See, Handle: a.list,
			Summary: "The networks that may connect", Answers: documented(http.StatusOK, wire.Data[[]wire.AllowlistEntry]{}),
		},
		{
			Method: http.MethodPost, Path: network, Class: ratelimit.Write, Target: Database, Action: account.Configure,
			Body: JSON[wire.AddAllowlistEntry](), Handle: a.add,
			Summary: "Let a network connect", Answers: documented(http.StatusCreated, wire.Data[wire.AllowlistEntry]{}),
		},
		{
			Method: http.MethodDelete, Path: network + "/{entryId}", Class: ratelimit.Write,
			Target: Database, Action: account.Configure, Handle: a.remove,
			Summary: "Take a network off the allowlist", Answers: documented(http.StatusNoContent, nil),
		},
		{
			Method: http.MethodGet, Path: files, Class: ratelimit.Read, Target: Database, Action: account.See,
			List: WholeList, Handle: b.list,
			Summary: "The backups of a database, newest first", Answers: documented(http.StatusOK, wire.Page[wire.Backup]{}),
		},
		{
			Method: http.MethodPost, Path: files, Class: ratelimit.Create, Target: Database, Action: account.ManageBackups,
			Handle:  b.start,
			Summary: "Start a backup", Answers: documented(http.StatusAccepted, wire.OperationWithMessage{}),
		},
		{
			Method: http.MethodGet, Path: file, Class: ratelimit.Read, Target: Database, Action: account.See, Handle: b.download,
			Summary: "Download a backup", Answers: []Documented{{Status: http.StatusOK, ContentType: gzipType}},
			TryLater: []fault.Code{fault.RateLimited, fault.ServerBusy},
		},
		{
			Method: http.MethodDelete, Path: file, Class: ratelimit.Write, Target: Database, Action: account.ManageBackups,
			Handle:  b.delete,
			Summary: "Delete a backup for good", Answers: documented(http.StatusNoContent, nil),
		},
		{
			Method: http.MethodGet, Path: one + "/operations", Class: ratelimit.Read, Target: Database, Action: account.See,
			List: LongList, Handle: o.list,
			Summary: "The operations of a database, newest first", Answers: documented(http.StatusOK, wire.Page[wire.Operation]{}),
		},
		{
			Method: http.MethodGet, Path: work, Class: ratelimit.Read, Target: Operation, Action: account.See, Handle: o.get,
			Summary: "One operation", Answers: documented(http.StatusOK, wire.Operation{}),
		},
		{
			Method: http.MethodPost, Path: work + "/cancel", Class: ratelimit.Write, Target: Operation, Action: account.See,
			Handle:  o.cancel,
			Summary: "Cancel an operation: 200 when it is canceled, 202 while its worker has yet to end it",
			Answers: append(documented(http.StatusOK, wire.OperationWithMessage{}),
				documented(http.StatusAccepted, wire.OperationWithMessage{})...),
		},
		{
			Method: http.MethodGet, Path: one + "/activity", Class: ratelimit.Read, Target: Database, Action: account.See,
			List: LongList, Handle: l.list,
			Summary: "The activity log of a database, newest first", Answers: documented(http.StatusOK, wire.Page[wire.Activity]{}),
		},
		{
			Method: http.MethodGet, Path: hooks, Class: ratelimit.Read, Key: FullAccount, List: WholeList, Handle: w.list,
			Summary: "The account's webhook endpoints, disabled ones too", Answers: documented(http.StatusOK, wire.Page[wire.Webhook]{}),
		},
		{
			Method: http.MethodPost, Path: hooks, Class: ratelimit.Write, Key: FullAccount, NoStore: true,
			Body: JSON[wire.CreateWebhook](), Handle: w.create,
			Summary: "Make a webhook endpoint", Answers: documented(http.StatusCreated, wire.Data[wire.WebhookSecret]{}),
		},
		{
			Method: http.MethodPost, Path: hook + "/rotate", Class: ratelimit.Write, Key: FullAccount, Target: Webhook, NoStore: true,
			Handle:  w.rotate,
			Summary: "Replace the signing secret, and enable the endpoint again",
			Answers: documented(http.StatusOK, wire.DataWithMessage[wire.WebhookSecret]{}),
		},
		{
			Method: http.MethodDelete, Path: hook, Class: ratelimit.Write, Key: FullAccount, Target: Webhook, Handle: w.disable,
			Summary: "Disable an endpoint", Answers: documented(http.StatusNoContent, nil),
		},
		{
			Method: http.MethodPost, Path: hook + "/test", Class: ratelimit.Write, Key: FullAccount, Target: Webhook, Handle: w.test,
			Summary: "Send a webhook.test event", Answers: documented(http.StatusAccepted, wire.DataWithMessage[wire.Delivery]{}),
		},
		{
			Method: http.MethodGet, Path: sent, Class: ratelimit.Read, Key: FullAccount, Target: Webhook,
			List: LongList, Handle: w.attempts,
			Summary: "The attempts at an endpoint, newest first", Answers: documented(http.StatusOK, wire.Page[wire.DeliveryAttempt]{}),
		},
		{
			Method: http.MethodPost, Path: sent + "/{deliveryId}/redeliver", Class: ratelimit.Write, Key: FullAccount, Target: Webhook,
			Handle:  w.redeliver,
			Summary: "Send an event once more", Answers: documented(http.StatusAccepted, wire.DataWithMessage[wire.Delivery]{}),
		},
	}, roleRoutes(uc)...)
}

func documented(status int, body any) []Documented { return []Documented{{Status: status, Body: body}} }
