"""Pure rules about rows: whether a draft can be appended, the meaning of detail fields, and conflicts."""
