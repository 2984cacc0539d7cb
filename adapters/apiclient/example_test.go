package apiclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

// A database is created, and everything about it is printed.
func ExampleClient() {
	ctx := context.Background()
	client, err := apiclient.New(apiclient.Config{URL: os.Getenv("PGHERD_URL"), Key: os.Getenv("PGHERD_API_KEY")})
	if err != nil {
		fmt.Println(err)
		return
	}
	made, err := client.Databases.Create(ctx, wire.CreateDatabase{Name: "orders", DisplayName: "Orders"})
	var refused *apiclient.Error
	switch {
	case errors.As(err, &refused) && refused.Code == fault.PlanLimit:
		fmt.Println("no more databases:", refused.Message)
		return
	case err != nil:
		fmt.Println(err)
		return
	}
	for entry, err := range client.Activity.List(made.ID).All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(entry.At, entry.Action)
	}
}

// The newest backup is copied to standard output, and held against its checksum.
func ExampleBackups_Download() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	client, err := apiclient.New(apiclient.Config{URL: os.Getenv("PGHERD_URL"), Key: os.Getenv("PGHERD_API_KEY")})
	if err != nil {
		fmt.Println(err)
		return
	}
	const database = "0b5c1f4e-7a52-4f0d-9d3e-1c2b3a4d5e6f"
	for backup, err := range client.Backups.List(database).All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		file, err := client.Backups.Download(ctx, database, backup.Filename)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer file.Close()
		if _, err := io.Copy(os.Stdout, file); err != nil || file.SHA256() != backup.ChecksumSHA256 {
			fmt.Println("the file is not whole:", err)
		}
		return
	}
}
