// Command client lists the databases that a key can see, by a generated client: its name is in openapi_test.go.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"client/api"
)

func main() {
	if err := list(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func list(base, key string) error {
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
	c, err := api.NewClientWithResponses(base, api.WithRequestEditorFn(authorize))
	if err != nil {
		return err
	}
	answer, err := c.ListDatabasesWithResponse(context.Background(), nil)
	if err != nil {
		return err
	}
	if answer.JSON200 == nil {
		return fmt.Errorf("%s: %s", answer.Status(), answer.Body)
	}
	for _, d := range answer.JSON200.Data {
		fmt.Println(d.Id, d.Name, d.Status)
	}
	return nil
}
