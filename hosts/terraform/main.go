// Command terraform-provider-pgherd is the Terraform provider of a pgherd.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/pgherd/pgherd/hosts/terraform/provider"
)

func main() {
	err := providerserver.Serve(context.Background(), provider.New, providerserver.ServeOpts{Address: provider.Address})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "terraform-provider-pgherd:", err)
		os.Exit(1)
	}
}
