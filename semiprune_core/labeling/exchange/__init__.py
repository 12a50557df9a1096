"""Labels as files of other tools write and read them: rows of CSV, Label Studio's forms, the list of drawn images."""
