package databases_test

func databaseResource(id string) string { return "database/" + id }
