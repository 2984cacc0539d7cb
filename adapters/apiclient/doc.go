// Package apiclient is the Go client of the control plane API.
//
// A Client has one group of calls for each area of the API, with the types of adapters/httpapi/wire. Their methods are generated
// from the table of routes:
//
//	client, err := apiclient.New(apiclient.Config{URL: "https://pgherd.example.com", Key: key})
//	made, err := client.Databases.Create(ctx, wire.CreateDatabase{Name: "orders", DisplayName: "Orders"})
//
// A refusal is an *Error. A call that may be sent again is sent again after an answer that asks for it and after none at all; see
// Config.Attempts.
package apiclient
