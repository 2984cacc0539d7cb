package httpapi

import (
	"net/http"

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
			Summary: "The databases that the key sees", Answers: documented(http.StatusOK, Listed[databaseView]{}),
		},
		{
			Method: http.MethodPost, Path: list, Class: ratelimit.Create, Key: FullAccount, PlanRefusal: planLimit,
			Body: JSON[createBody](), Idempotency: Optional, NoStore: true, Handle: d.create,
			Summary: "Make a database", Answers: documented(http.StatusCreated, createdView{}),
		},
		{
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Target: Database, Action: account.See, Handle: d.get,
			Summary: "One database", Answers: documented(http.StatusOK, databaseView{}),
		},
		{
			Method: http.MethodPatch, Path: one + "/environment", Class: ratelimit.Write,
			Target: Database, Action: account.Configure, Body: JSON[environmentBody](), Handle: d.setEnvironment,
			Summary: "Change the environment label", Answers: documented(http.StatusOK, told[environmentView]{}),
		},
		{
			Method: http.MethodPost, Path: one + "/lifecycle", Class: ratelimit.Write,
			Target: Database, Action: account.Configure, Body: JSON[lifecycleBody](), Handle: d.setLifecycle,
			Summary: "Start, stop or restart a database", Answers: documented(http.StatusOK, told[lifecycleView]{}),
		},
		{
			Method: http.MethodGet, Path: network, Class: ratelimit.Read, Target: Database, Action: account.See, Handle: a.list,
			Summary: "The networks that may connect", Answers: documented(http.StatusOK, data[[]entryView]{}),
		},
		{
			Method: http.MethodPost, Path: network, Class: ratelimit.Write, Target: Database, Action: account.Configure,
			Body: JSON[entryBody](), Handle: a.add,
			Summary: "Let a network connect", Answers: documented(http.StatusCreated, data[entryView]{}),
		},
		{
			Method: http.MethodDelete, Path: network + "/{entryId}", Class: ratelimit.Write,
			Target: Database, Action: account.Configure, Handle: a.remove,
			Summary: "Take a network off the allowlist", Answers: documented(http.StatusNoContent, nil),
		},
		{
			Method: http.MethodGet, Path: files, Class: ratelimit.Read, Target: Database, Action: account.See,
			List: WholeList, Handle: b.list,
			Summary: "The backups of a database, newest first", Answers: documented(http.StatusOK, Listed[backupView]{}),
		},
		{
			Method: http.MethodPost, Path: files, Class: ratelimit.Create, Target: Database, Action: account.ManageBackups,
			Handle:  b.start,
			Summary: "Start a backup", Answers: documented(http.StatusAccepted, started{}),
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
			Summary: "The operations of a database, newest first", Answers: documented(http.StatusOK, Listed[operationView]{}),
		},
		{
			Method: http.MethodGet, Path: work, Class: ratelimit.Read, Target: Operation, Action: account.See, Handle: o.get,
			Summary: "One operation", Answers: documented(http.StatusOK, operationView{}),
		},
		{
			Method: http.MethodPost, Path: work + "/cancel", Class: ratelimit.Write, Target: Operation, Action: account.See,
			Handle:  o.cancel,
			Summary: "Cancel an operation: 200 when it is canceled, 202 while its worker has yet to end it",
			Answers: append(documented(http.StatusOK, started{}), documented(http.StatusAccepted, started{})...),
		},
		{
			Method: http.MethodGet, Path: one + "/activity", Class: ratelimit.Read, Target: Database, Action: account.See,
			List: LongList, Handle: l.list,
			Summary: "The activity log of a database, newest first", Answers: documented(http.StatusOK, Listed[activityView]{}),
		},
		{
			Method: http.MethodGet, Path: hooks, Class: ratelimit.Read, Key: FullAccount, List: WholeList, Handle: w.list,
			Summary: "The account's webhook endpoints, disabled ones too", Answers: documented(http.StatusOK, Listed[endpointView]{}),
		},
		{
			Method: http.MethodPost, Path: hooks, Class: ratelimit.Write, Key: FullAccount, Body: JSON[endpointBody](), NoStore: true,
			Handle:  w.create,
			Summary: "Make a webhook endpoint", Answers: documented(http.StatusCreated, data[secretView]{}),
		},
		{
			Method: http.MethodPost, Path: hook + "/rotate", Class: ratelimit.Write, Key: FullAccount, Target: Webhook, NoStore: true,
			Handle:  w.rotate,
			Summary: "Replace the signing secret, and enable the endpoint again",
			Answers: documented(http.StatusOK, told[secretView]{}),
		},
		{
			Method: http.MethodDelete, Path: hook, Class: ratelimit.Write, Key: FullAccount, Target: Webhook, Handle: w.disable,
			Summary: "Disable an endpoint", Answers: documented(http.StatusNoContent, nil),
		},
		{
			Method: http.MethodPost, Path: hook + "/test", Class: ratelimit.Write, Key: FullAccount, Target: Webhook, Handle: w.test,
			Summary: "Send a webhook.test event", Answers: documented(http.StatusAccepted, told[deliveryView]{}),
		},
		{
			Method: http.MethodGet, Path: sent, Class: ratelimit.Read, Key: FullAccount, Target: Webhook,
			List: LongList, Handle: w.attempts,
			Summary: "The attempts at an endpoint, newest first", Answers: documented(http.StatusOK, Listed[attemptView]{}),
		},
		{
			Method: http.MethodPost, Path: sent + "/{deliveryId}/redeliver", Class: ratelimit.Write, Key: FullAccount, Target: Webhook,
			Handle:  w.redeliver,
			Summary: "Send an event once more", Answers: documented(http.StatusAccepted, told[deliveryView]{}),
		},
	}, roleRoutes(uc)...)
}

func documented(status int, body any) []Documented { return []Documented{{Status: status, Body: body}} }
