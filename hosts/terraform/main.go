// Command terraform-provider-pgherd is the Terraform provider of a pgherd.
package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/pgherd/pgherd/hosts/terraform/provider"
)

func main() {
	if err := tf6server.Serve(provider.Address, provider.NewServer); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "terraform-provider-pgherd:", err)
		os.Exit(1)
	}
}
