"""The objects of a project in a notebook: `wb.tasks`, `wb.agents`, `wb.approvals`, … Every use is one operation."""
